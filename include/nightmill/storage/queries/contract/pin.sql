insert into nightmill.contract (job, folder_hash, files, prompt_version, output_schema_version, model_policy_version,
    transform_name, transform_version, validators_hash)
values (%(job)s, %(folder_hash)s, %(files)s, %(prompt_version)s, %(output_schema_version)s, %(model_policy_version)s,
    %(transform_name)s, %(transform_version)s, %(validators_hash)s)
on conflict (job, folder_hash) do nothing
returning contract_id
