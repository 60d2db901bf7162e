select entity, entity_id, from_state, to_state, reason, made_at
from nightmill.transition
where batch_id = %(batch_id)s
    and (entity = %(entity)s and entity_id = %(entity_id)s
        or entity = 'provider_batch' and entity_id = any(%(provider_batch_ids)s))
order by transition_id desc
limit 100
