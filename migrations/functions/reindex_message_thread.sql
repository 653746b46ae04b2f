-- Trigger of `messages`: a merge moves messages to another thread, which is a facet of their search documents.
create or replace function reindex_message_thread() returns trigger
language plpgsql as $$
begin
  update message_search
  set document = ts_delete(document, old.thread_id) || array_to_tsvector(array[new.thread_id])
  where message_id = new.id;
  return null;
end $$;
