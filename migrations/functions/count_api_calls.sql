-- Counts the calls a process served, by organization, in one statement, and returns each organization's total of the
-- month with what its limit follows from.
create or replace function count_api_calls(calls jsonb, counted_at timestamptz, month_start timestamptz)
returns table (
  org_id text, tier text, override_kind text, override_amount bigint, custom_amount bigint, current bigint
)
language sql volatile security definer set search_path = public, pg_temp as $$
  with counted as (
    insert into usage_deltas (org_id, counter, at, amount)
    select c.key, 'api_calls', counted_at, c.value::bigint
    from jsonb_each_text(calls) c join organizations o on o.id = c.key
    where c.value::bigint > 0
    returning org_id, amount)
  select o.id, o.tier, v.kind, v.amount, w.amount,
    (coalesce((select u.amount from usage_counters u
        where u.org_id = o.id and u.counter = 'api_calls' and u.period_start = month_start), 0)
      + coalesce((select sum(d.amount) from usage_deltas d
        where d.org_id = o.id and d.counter = 'api_calls' and d.at >= month_start), 0)
      + coalesce((select n.amount from counted n where n.org_id = o.id), 0))::bigint
  from jsonb_object_keys(calls) as called
  join organizations o on o.id = called
  left join limit_overrides v on v.org_id = o.id and v.resource = 'api_calls'
    and (v.expires_at is null or v.expires_at > now())
  left join custom_limits w on w.org_id = o.id and w.counter = 'api_calls'
$$;
