-- Whether somebody may still see what was shown before a flip: a session, a prepared transaction or a standby (its slot)
-- whose snapshot is not newer.
select exists (
    select
    from (
        select pg_snapshot_xmax(pg_current_snapshot())::text::numeric - flipped_by::text::numeric as flip_age
        from nightmill.publication
        where publish_seq = %(publish_seq)s
    ) as flip
    join (
        select backend_xmin as oldest from pg_stat_activity
        where backend_xmin is not null and pid <> pg_backend_pid() and backend_type <> 'autovacuum worker'
            and (datid is null or datid = (select oid from pg_database where datname = current_database()))
        union all
        select transaction from pg_prepared_xacts where database = current_database()
        union all
        select xmin from pg_replication_slots where xmin is not null
    ) as held on age(held.oldest) >= flip.flip_age
)
