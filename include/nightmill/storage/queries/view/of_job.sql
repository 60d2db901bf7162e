select view_name from nightmill.view_definition where job = %(job)s order by view_name
