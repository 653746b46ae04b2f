-- The lexemes of a file name's words. domain/messages/search-query.ts splits the values of `filename:` in the same way.
create or replace function search_filename(filename text) returns text[]
language sql immutable parallel safe set search_path = public, pg_temp as $$
  select coalesce(array_agg(distinct 'n:' || word), '{}')
  from regexp_split_to_table(lower(search_words(left(filename, 255))), '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+') word
  where word <> ''
$$;
