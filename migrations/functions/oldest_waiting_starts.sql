-- Age of the oldest command in the outbox for each task queue, among the 10,000 oldest, without its tenant.
create or replace function oldest_waiting_starts()
returns table (task_queue text, age_seconds double precision)
language sql stable security definer set search_path = public, pg_temp as $$
  select waiting.task_queue, extract(epoch from now() - min(waiting.created_at))::double precision
  from (
    select o.task_queue, o.created_at from outbox o where o.dead_at is null order by o.id limit 10000
  ) waiting
  where waiting.task_queue is not null
  group by waiting.task_queue
$$;
