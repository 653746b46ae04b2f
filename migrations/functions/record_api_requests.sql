-- Records the calls that a process served, of all organizations, in one statement. Calls of an organization that was purged
-- meanwhile are left out.
create or replace function record_api_requests(calls jsonb) returns void
language sql volatile security definer set search_path = public, pg_temp as $$
  insert into api_requests
    (id, org_id, env_id, method, path, status, code, credential_kind, credential_id, duration_ms)
  select c.id, c.org_id, c.env_id, c.method, c.path, c.status, c.code, c.credential_kind, c.credential_id, c.duration_ms
  from jsonb_to_recordset(calls) as c(
    id text, org_id text, env_id text, method text, path text, status smallint, code text, credential_kind text,
    credential_id text, duration_ms integer)
  join organizations o on o.id = c.org_id
  on conflict do nothing
$$;
