-- Takes up to `requested` tokens from a bucket that refills by `refill` a second; returns the number granted.
create or replace function lease_rate_tokens(
  bucket text, capacity double precision, refill double precision, requested integer
) returns integer
language plpgsql set search_path = public, pg_temp as $$
declare available double precision; granted integer;
begin
  insert into rate_buckets (id, tokens, refilled_at) values (bucket, capacity, clock_timestamp())
  on conflict (id) do nothing;
  select least(capacity, tokens + refill * greatest(0, extract(epoch from clock_timestamp() - refilled_at)))
    into available from rate_buckets where id = bucket for update;
  granted := greatest(0, least(requested, floor(available)::integer));
  update rate_buckets set tokens = available - granted, refilled_at = clock_timestamp() where id = bucket;
  return granted;
end $$;
