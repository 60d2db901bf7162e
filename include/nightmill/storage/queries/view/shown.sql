select view_name, view_definition.job, view_definition.mode, max(batch.contract_id) as contract_id
from nightmill.view_definition
join nightmill.published using (view_name)
join nightmill.batch using (view_name)
where to_regclass('nightmill.' || quote_ident('rows_' || view_name)) is not null
group by view_name
order by view_name
