-- Trigger of `messages`: labels are all of a search document that changes after the message is stored.
create or replace function reindex_message_labels() returns trigger
language plpgsql as $$
begin
  update message_search
  set document = ts_delete(document, search_labels(old.labels)) || array_to_tsvector(search_labels(new.labels))
  where message_id = new.id;
  return null;
end $$;
