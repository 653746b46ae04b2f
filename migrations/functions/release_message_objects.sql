-- Trigger of `messages`: lists the objects of a deleted message for the sweep, which keeps those another message shares. Delivery
-- reports quote the message, and duplicates repeat it, so they go with it.
create or replace function release_message_objects() returns trigger
language plpgsql as $$
begin
  with receipts as (
    delete from inbound_receipts
    where status <> 'received' and (kind = 'report' and message_id = old.id or duplicate_of = old.id)
    returning raw_key)
  insert into unclaimed_objects (storage_key, org_id, due_at)
  select distinct key, old.org_id, now()
  from (select unnest(array[old.raw_key, old.submitted_key]) union all select raw_key from receipts) keys (key)
  where key is not null
  on conflict (storage_key) do update set due_at = excluded.due_at;
  return null;
end $$;
