-- What checks of inputs found while a batch was frozen.

alter table nightmill.item add column skip_class text, add column skip_message text;
comment on column nightmill.item.skip_reason is
    'Why this item is never sent: the code of what a check of inputs found, or deleted; else null';
comment on column nightmill.item.skip_class is 'The failure class of skip_reason';
comment on column nightmill.item.skip_message is
    'The message of its dead letter; null beside a skip_reason: the item is left out without one';

-- Manifests that were frozen and not planned when this came.
update nightmill.item set skip_class = 'input', skip_message = case skip_reason when 'over_context' then
    'never sent: with the answer''s reserve it is longer than provider.context_window_tokens; shorten the text in the '
    'source query, or take a model with a larger window' end
where skip_reason is not null;

alter table nightmill.item add constraint item_never_sent
    check ((skip_reason is null) = (skip_class is null) and (skip_message is null or skip_reason is not null));
