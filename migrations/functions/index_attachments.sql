-- Trigger of `attachments`, once for each statement: adds the file names to the search documents of their messages.
create or replace function index_attachments() returns trigger
language plpgsql as $$
begin
  update message_search s
  set document = s.document || array_to_tsvector(names.lexemes)
  from (
    select inbox_id, message_id, array_agg(distinct lexeme) as lexemes
    from changed, unnest(search_filename(filename)) lexeme
    where message_id is not null group by inbox_id, message_id
  ) names
  where s.inbox_id = names.inbox_id and s.message_id = names.message_id;
  return null;
end $$;
