update nightmill.batch set params = params || jsonb_build_object('publish', %(publish)s::text, 'publish_run', %(run_id)s::text)
where batch_id = %(batch_id)s
