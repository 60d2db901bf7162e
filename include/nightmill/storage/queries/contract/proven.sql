-- Whether an answer was ever accepted under the same meaning: prompt, schema, parameters, transform and rules. A batch
-- that is not reconciled is asked itself, unless its rows are gone.
select exists (
    select
    from nightmill.batch
    join nightmill.contract using (contract_id)
    join nightmill.contract as mine on mine.contract_id = %(contract_id)s
    where batch.job = mine.job
        and (contract.prompt_version, contract.output_schema_version, contract.model_policy_version,
            contract.transform_name, contract.transform_version, contract.validators_hash)
            = (mine.prompt_version, mine.output_schema_version, mine.model_policy_version,
            mine.transform_name, mine.transform_version, mine.validators_hash)
        and (
            coalesce((batch.counts ->> 'accepted')::bigint, 0) > 0
            or batch.retired_at is null and batch.counts is null and exists (
                select from nightmill.attempt where attempt.batch_id = batch.batch_id and attempt.class is null
            )
        )
)
