-- What the view shows stays: its one part becomes its first interval.
with shown as (
    update nightmill.published
    set mode = %(mode)s, part_id = case when %(mode)s = 'by_interval' then null else part_id end
    where view_name = %(view_name)s
)
update nightmill.view_definition set mode = %(mode)s where view_name = %(view_name)s
