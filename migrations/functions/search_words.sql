-- Prepares text for full-text search: strips accents and puts spaces around Chinese and Japanese characters, which are
-- written without spaces, so that each becomes a word. domain/messages/search-query.ts does the same with the query.
create or replace function search_words(value text) returns text
language sql immutable parallel safe set search_path = pg_catalog as $$
  select case when value ~ '[^\x01-\x7f]' then
    regexp_replace(
      normalize(regexp_replace(normalize(value, NFKD), '[\u0300-\u036f]', '', 'g'), NFKC),
      '([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])', ' \1 ', 'g')
  else value end
$$;
