-- Trigger of `events`: wakes live event streams at the commit. PostgreSQL sends equal notifications of a transaction
-- once, however many events it records. The channel is SIGNALS_CHANNEL of platform/event-signals.ts.
create or replace function signal_event() returns trigger
language plpgsql as $$
begin
  perform pg_notify('agent_email_events', case when new.inbox_id is null then new.org_id else new.env_id end);
  return null;
end $$;
