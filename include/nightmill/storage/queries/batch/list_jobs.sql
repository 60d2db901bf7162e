select distinct job from nightmill.batch
