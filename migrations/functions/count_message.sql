-- Trigger of `messages`: adds what happened to a message to the metrics of its hour. One change may hold several
-- outcomes of different hours: the relay accepted the message at 09:59, the delivery report came at 10:00. On insert all
-- columns of `old` are null.
create or replace function count_message() returns trigger
language plpgsql as $$
begin
  insert into metric_deltas
    (org_id, env_id, inbox_id, hour, sent, delivered, bounced, complained, rejected, received, attempted)
  select new.org_id, new.env_id, new.inbox_id, date_trunc('hour', at, 'UTC'),
    count(*) filter (where outcome = 'sent'), count(*) filter (where outcome = 'delivered'),
    count(*) filter (where outcome = 'bounced'), count(*) filter (where outcome = 'complained'),
    count(*) filter (where outcome = 'rejected'), count(*) filter (where outcome = 'received'),
    count(*) filter (where outcome = 'attempted')
  from (values
    ('sent', case when old.sent_at is null then new.sent_at end),
    ('delivered', case when old.delivered_at is null then new.delivered_at end),
    ('bounced', case when old.bounced_at is null then new.bounced_at end),
    ('complained', case when old.complained_at is null then new.complained_at end),
    ('rejected', case when new.status = 'rejected' and old.status is distinct from 'rejected' then new.updated_at end),
    ('received', case when new.announced and (old.announced and old.received_at is not null) is not true
      then new.received_at end),
    ('attempted', case when old.sent_at is null and old.bounced_at is null
      then least(new.sent_at, new.bounced_at) end)) outcomes (outcome, at)
  where at is not null
  group by date_trunc('hour', at, 'UTC');
  return null;
end $$;
