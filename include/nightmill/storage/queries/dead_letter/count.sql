select batch.job, letter.batch_id, letter.class as kind, letter.code, letter.ended_as, count(*) as letters,
    min(letter.created_at) as oldest
from nightmill.dead_letter as letter
join nightmill.batch on batch.batch_id = letter.batch_id
left join nightmill.item on item.batch_id = letter.batch_id and item.ordinal = letter.ordinal
where (%(job)s::text is null or batch.job = %(job)s::text)
    and (%(batch_id)s::int8 is null or letter.batch_id = %(batch_id)s::int8)
    and {matches}
group by batch.job, letter.batch_id, letter.class, letter.code, letter.ended_as
order by letter.batch_id desc, letters desc, letter.class, letter.code, letter.ended_as
