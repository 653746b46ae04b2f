-- Trigger of `attachments`: `storage_bytes` is the sum of the rows' sizes, whichever statement adds or deletes them.
create or replace function count_storage() returns trigger
language plpgsql as $$
begin
  insert into usage_deltas (org_id, counter, at, amount)
  select org_id, 'storage_bytes', now(), case tg_op when 'DELETE' then - sum(size_bytes) else sum(size_bytes) end
  from changed group by org_id having sum(size_bytes) > 0;
  return null;
end $$;
