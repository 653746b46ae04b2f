-- The lexemes of a message's labels.
create or replace function search_labels(labels text[]) returns text[]
language sql immutable parallel safe set search_path = pg_catalog as $$
  select coalesce(array_agg('l:' || left(label, 255)), '{}') from unnest(labels) label
$$;
