create temporary table if not exists sent_again (
    ordinal int8 primary key,
    tokens int4,
    skip_reason text,
    skip_class text,
    skip_message text
)
