-- Deletes commands that Temporal has accepted, of any organization: one statement for a batch. Returns their number.
create or replace function delete_dispatched(ids bigint[])
returns integer
language sql volatile security definer set search_path = public, pg_temp as $$
  with deleted as (delete from outbox o where o.id = any(ids) returning 1)
  select count(*)::int from deleted
$$;
