insert into nightmill.deployment (deployment_id) values (%(deployment_id)s) on conflict do nothing
