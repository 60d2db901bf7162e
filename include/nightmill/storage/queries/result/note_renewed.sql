insert into pg_temp.renewed (result_id, citations)
select * from unnest(%(ids)s::bigint[], %(citations)s::jsonb[])
