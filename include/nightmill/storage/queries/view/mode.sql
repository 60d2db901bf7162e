select mode from nightmill.view_definition where view_name = %(view_name)s
