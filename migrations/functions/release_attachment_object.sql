-- Trigger of `attachments`: lists the deleted row's objects, the file and its text, for the sweep, also if the row goes with its message, draft,
-- inbox or organization. Updates, and so locks, an entry that is there: the sweep must not remove it because of a row
-- that is about to go.
create or replace function release_attachment_object() returns trigger
language plpgsql as $$
begin
  insert into unclaimed_objects (storage_key, org_id, due_at)
  select key, old.org_id, now() from unnest(array[old.storage_key, old.text_key]) keys (key) where key is not null
  on conflict (storage_key) do update set due_at = excluded.due_at;
  return null;
end $$;
