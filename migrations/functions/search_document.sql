-- The search document of a message (domain/messages/message-search.entity.ts describes its lexemes). Indexes prefixes of
-- long texts only, because PostgreSQL rejects a document over 1 MiB.
create or replace function search_document(message messages) returns tsvector
language plpgsql immutable parallel safe set search_path = public, pg_temp as $$
declare
  facets tsvector;
  recipients text;
  addresses text[];
begin
  select string_agg(search_address(entry ->> 'email', entry ->> 'name'), ' '),
         coalesce(array_agg('t:' || left(lower(entry ->> 'email'), 320))
           || array_agg(distinct 't:@' || split_part(left(lower(entry ->> 'email'), 320), '@', -1)), '{}')
    into recipients, addresses
    from (select entry from jsonb_array_elements(message."to" || message.cc || message.bcc) entry limit 200) first;
  facets := array_to_tsvector(
    array[message.env_id, message.inbox_id, message.thread_id, 'd:' || message.direction,
          'f:' || left(lower(message.from_email), 320),
          'f:@' || split_part(left(lower(message.from_email), 320), '@', -1)]
    || addresses || search_labels(message.labels)
    || case when message.has_attachments then array['h:attachment'] else '{}'::text[] end);
  begin
    return facets
      || setweight(to_tsvector('simple', search_words(left(message.subject, 1000))), 'A')
      || setweight(to_tsvector('simple', search_words(search_address(message.from_email, message.from_name))), 'B')
      || setweight(to_tsvector('simple', search_words(coalesce(recipients, ''))), 'C')
      || to_tsvector('simple', search_words(left(
           coalesce(message.text_body, message.extracted_text, message.html_body, ''), 100000)));
  exception when program_limit_exceeded then
    -- A message is stored even if its text cannot be indexed.
    return facets;
  end;
end $$;
