-- Who besides nightmill_owner may put things into our schemas: what lies in `nightmill` is run with the owner's rights.
-- `results` holds views only, so a right to add more there does no harm; owning it does.
select schema.nspname::text, coalesce(stranger.rolname::text, 'public'), own.owns
from pg_namespace as schema
cross join lateral (
    select schema.nspowner as role, true as owns
    union all
    select acl.grantee, false
    from aclexplode(schema.nspacl) as acl
    where acl.privilege_type = 'CREATE' and schema.nspname = 'nightmill' and acl.grantee <> schema.nspowner
) as own
left join pg_roles as stranger on stranger.oid = own.role
where schema.nspname in ('nightmill', 'results') and stranger.rolname is distinct from 'nightmill_owner'
    and not coalesce(stranger.rolsuper, false)
order by schema.nspname, own.owns desc
limit 1
