insert into demo.parsed_requirement as held (source_id, package, extras, version_range, marker, is_optional)
select source_id, package, extras, version_range, marker, is_optional
from arriving_requirement
where parsed
on conflict (source_id) do update set package = excluded.package,
    extras = excluded.extras,
    version_range = excluded.version_range,
    marker = excluded.marker,
    is_optional = excluded.is_optional
where (held.package, held.extras, held.version_range, held.marker, held.is_optional)
    is distinct from
    (excluded.package, excluded.extras, excluded.version_range, excluded.marker, excluded.is_optional);
