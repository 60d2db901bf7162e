select count(*) from {outcomes} where result_id is not null
