select letter.dead_letter_id, batch.job, letter.batch_id, letter.ordinal, item.source_id, item.source_version,
    item.tenant, item.domain, letter.class as kind, letter.code, letter.ended_as, letter.message, letter.attempts,
    letter.created_at, coalesce(letter.origin_batch_id, letter.batch_id) as gave_up_in,
    encode(letter.key, 'hex') as key, contract.contract_id, contract.prompt_version, contract.output_schema_version,
    contract.model_policy_version, contract.transform_version, sent.shard_id, letter.provider_batch_id, sent.provider_id,
    segment.object_path as payload_object, letter.ordinal - segment.first_ordinal + 1 as payload_line,
    case
        when letter.class = 'output' and sent.evidence_deleted_at is null and origin.retired_at is null then sent.token
    end as answer_token,
    coalesce(first.ordinal, letter.ordinal) as gave_up_ordinal
from nightmill.dead_letter as letter
join nightmill.batch on batch.batch_id = letter.batch_id
join nightmill.batch as origin on origin.batch_id = coalesce(letter.origin_batch_id, letter.batch_id)
join nightmill.contract on contract.contract_id = origin.contract_id
left join nightmill.dead_letter as first on first.batch_id = letter.origin_batch_id and first.key = letter.key
left join nightmill.item on item.batch_id = letter.batch_id and item.ordinal = letter.ordinal
left join nightmill.provider_batch as sent on sent.provider_batch_id = letter.provider_batch_id
left join nightmill.payload_segment as segment
    on segment.batch_id = coalesce(batch.payload_batch_id, batch.batch_id)
    and letter.ordinal between segment.first_ordinal and segment.last_ordinal
where (%(job)s::text is null or batch.job = %(job)s::text)
    and (%(batch_id)s::int8 is null or letter.batch_id = %(batch_id)s::int8)
    and {matches}
order by letter.batch_id desc, letter.ordinal
limit %(limit)s
