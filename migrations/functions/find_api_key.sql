-- Finds the key and the environment of a request, before its tenant is known. The token before the last rotation finds the
-- key, too, until the overlap ends; expiry and last use are then those of this token. Returns no row if the key is unknown
-- or revoked; the status is `deleted` if the organization is closed; the environment is null if the requested one is not
-- the organization's or not the key's. A key of the whole organization works, unless the request names an environment, in that of the requested resource, or else in production.
create or replace function find_api_key(presented_hash bytea, requested_env text, requested_resource text)
returns table (
  key_id text, org_id text, org_status text, env_id text, env_kind text, env_status text, env_bound boolean,
  inbox_id text, inbox_status text, permissions text[], allowed_cidrs text[], organization_cidrs text[], expires_at timestamptz,
  last_used_at timestamptz, is_previous boolean
)
language sql stable security definer set search_path = public, pg_temp as $$
  select k.id, o.id, case when o.deleted_at is null then o.status else 'deleted' end,
         e.id, e.kind, e.status, k.env_id is not null,
         k.inbox_id, i.status, k.permissions, k.allowed_cidrs, coalesce(p.allowed_cidrs, '{}'),
         case when presented.is_previous then least(k.previous_expires_at, k.expires_at) else k.expires_at end,
         case when presented.is_previous then k.previous_last_used_at else k.last_used_at end,
         presented.is_previous
  from (
    select id, false as is_previous from api_keys where token_hash = presented_hash
    union all
    select id, true from api_keys where previous_token_hash = presented_hash) presented
  join api_keys k on k.id = presented.id
  join organizations o on o.id = k.org_id
  left join inboxes i on i.id = k.inbox_id
  left join organization_policies p on p.org_id = k.org_id
  -- `offset 0`: called once, not for each environment.
  left join lateral (
    select find_environment(requested_resource, k.org_id) as env_id
    where requested_env is null and k.env_id is null offset 0) r on true
  left join environments e on e.org_id = k.org_id
    and (k.env_id is null or e.id = k.env_id)
    and case when requested_env is not null then e.id = requested_env
             when k.env_id is not null then true
             when r.env_id is not null then e.id = r.env_id
             else e.slug = 'production' end
  where k.revoked_at is null
$$;
