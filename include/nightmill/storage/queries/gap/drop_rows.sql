select nightmill.drop_gap_rows(%(batch_id)s)
