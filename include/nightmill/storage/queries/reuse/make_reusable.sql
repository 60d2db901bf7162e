create temporary table if not exists reusable (
    ordinal int8 not null,
    domain text not null,
    result_id int8 not null,
    outdated bool not null,
    prompt_tokens int4 not null,
    output_tokens int4 not null,
    cache_read_tokens int4 not null,
    cache_write_tokens int4 not null,
    reasoning_tokens int4 not null,
    estimated bool not null -- the provider did not say: the prompt is the manifest's, the completion 0
)
