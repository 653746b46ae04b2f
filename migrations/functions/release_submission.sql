-- Trigger of `drafts`: lists the bytes of a deleted submission for the sweep, unless the draft became a message, which has
-- them then.
create or replace function release_submission() returns trigger
language plpgsql as $$
begin
  insert into unclaimed_objects (storage_key, org_id, due_at)
  select old.submission ->> 'storageKey', old.org_id, now()
  where not exists (select from messages where draft_id = old.id)
  on conflict (storage_key) do update set due_at = excluded.due_at;
  return null;
end $$;
