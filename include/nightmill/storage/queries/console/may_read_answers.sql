select has_function_privilege('nightmill.changed_rows(bigint, bigint, bigint, text[], text[], integer)', 'execute')
