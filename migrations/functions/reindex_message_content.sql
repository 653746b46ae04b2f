-- Trigger of `messages`: the content of a message whose parser failed changes when it is parsed again. Its files are added
-- afterwards, with their names.
create or replace function reindex_message_content() returns trigger
language plpgsql as $$
begin
  update message_search set document = search_document(new) where message_id = new.id;
  return null;
end $$;
