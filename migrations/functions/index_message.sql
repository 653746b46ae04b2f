-- Trigger of `messages`: writes the search document with the message.
create or replace function index_message() returns trigger
language plpgsql as $$
begin
  insert into message_search (message_id, org_id, env_id, inbox_id, document)
  values (new.id, new.org_id, new.env_id, new.inbox_id, search_document(new));
  return null;
end $$;
