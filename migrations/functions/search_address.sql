-- The words of an address: the whole of it, its domain, its parts and the display name.
create or replace function search_address(email text, name text) returns text
language sql immutable parallel safe set search_path = pg_catalog as $$
  select concat_ws(' ', left(email, 320), split_part(left(email, 320), '@', 2),
    regexp_replace(left(email, 320), '[^[:alnum:]]+', ' ', 'g'), left(name, 320))
$$;
