-- Trigger of the tables that decide who has access: at the commit, responses that stay open check their credential again.
-- The topic is what changed: an organization, a key, a connection or a user. The channel is
-- SIGNALS_CHANNEL of platform/event-signals.ts.
create or replace function signal_access() returns trigger
language plpgsql as $$
declare
  changed jsonb := coalesce(to_jsonb(new), to_jsonb(old));
begin
  perform pg_notify('agent_email_events', 'access:' || case
    when tg_table_name in ('organizations', 'users', 'api_keys', 'connections') then changed ->> 'id'
    when tg_table_name in ('sessions', 'members', 'staff_members') then changed ->> 'user_id'
    when tg_table_name = 'impersonations' then changed ->> 'staff_id'
    else changed ->> 'org_id' end);
  return null;
end $$;
