select item.source_id, item.source_version
from {items} as item
join nightmill.result on result.key = item.key and result.effective
where result.content_hash <> item.content_hash
order by item.source_id
limit 3
