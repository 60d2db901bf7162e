insert into {items} (batch_id, ordinal, key, source_id, source_version, content_hash, tenant, domain, tokens, skip_reason,
    skip_class, skip_message, required)
select %(batch_id)s, item.ordinal,
    case when sent_again.ordinal is null then item.key else sha256(
        %(key_scope)s::bytea
        || convert_to(octet_length(item.tenant) || ':' || item.tenant, 'UTF8')
        || convert_to(octet_length(item.source_id) || ':' || item.source_id, 'UTF8')
        || convert_to(octet_length(item.source_version) || ':' || item.source_version, 'UTF8')
        || %(key_tail)s::bytea
    ) end,
    item.source_id, item.source_version, item.content_hash, item.tenant, item.domain,
    coalesce(sent_again.tokens, item.tokens),
    case when sent_again.tokens is null then item.skip_reason else sent_again.skip_reason end,
    case when sent_again.tokens is null then item.skip_class else sent_again.skip_class end,
    case when sent_again.tokens is null then item.skip_message else sent_again.skip_message end,
    item.required
from nightmill.item
left join pg_temp.sent_again on sent_again.ordinal = item.ordinal
where item.batch_id = %(parent_id)s
order by item.ordinal
