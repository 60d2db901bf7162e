select deployment_id, pinned_at from nightmill.deployment
