-- Trigger of `messages`: lists the objects of a deleted message for the sweep, which keeps those another message shares.
create or replace function release_message_objects() returns trigger
language plpgsql as $$
begin
  insert into unclaimed_objects (storage_key, org_id, due_at)
  select key, old.org_id, now() from unnest(array[old.raw_key, old.submitted_key]) key where key is not null
  on conflict (storage_key) do update set due_at = excluded.due_at;
  return null;
end $$;
