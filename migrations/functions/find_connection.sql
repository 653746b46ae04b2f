-- Finds the connection of an access token, before its tenant is known, with what the policies of its organization look at.
-- Returns no row if the token is unknown or the connection ended, or its person is suspended, deleted or no longer a member.
-- `active_sso`: the organization's active SSO configuration signed the person in when they consented. The status is `deleted`
-- if the organization is closed; the environment is null if the requested one is not the organization's or not the
-- connection's. A connection of the whole organization works in the requested environment, or in that of the requested
-- resource, or in production.
create or replace function find_connection(presented_hash bytea, requested_env text, requested_resource text)
returns table (
  connection_id text, org_id text, org_status text, env_id text, env_status text, env_bound boolean,
  inbox_id text, inbox_status text, permissions text[], user_id text, client_id text, role text,
  method text, factors text[], authenticated_at timestamptz,
  active_sso boolean, require_mfa boolean, enforce_sso boolean, sso_satisfies_mfa boolean, allowed_cidrs text[],
  expires_at timestamptz, last_used_at timestamptz
)
language sql stable security definer set search_path = public, pg_temp as $$
  select c.id, o.id, case when o.deleted_at is null then o.status else 'deleted' end,
         e.id, e.status, c.env_id is not null,
         c.inbox_id, i.status, c.permissions, c.user_id, c.client_id, m.role,
         c.method, c.factors, c.authenticated_at,
         exists (
           select from sso_configurations s
           where s.id = c.sso_configuration_id and s.org_id = o.id and s.status = 'active'),
         coalesce(p.require_mfa, false), coalesce(p.enforce_sso, false), coalesce(p.sso_satisfies_mfa, true),
         coalesce(p.allowed_cidrs, '{}'),
         least(t.expires_at, c.expires_at), c.last_used_at
  from connection_tokens t
  join connections c on c.id = t.connection_id and c.ended_at is null
  join organizations o on o.id = c.org_id
  join users u on u.id = c.user_id and u.deleted_at is null and u.status = 'active'
  join members m on m.org_id = c.org_id and m.user_id = c.user_id
  left join inboxes i on i.id = c.inbox_id
  left join organization_policies p on p.org_id = c.org_id
  -- `offset 0`: called once, not for each environment.
  left join lateral (
    select find_environment(requested_resource, c.org_id) as env_id
    where requested_env is null and c.env_id is null offset 0) r on true
  left join environments e on e.org_id = c.org_id
    and (c.env_id is null or e.id = c.env_id)
    and case when requested_env is not null then e.id = requested_env
             when c.env_id is not null then true
             when r.env_id is not null then e.id = r.env_id
             else e.slug = 'production' end
  where t.token_hash = presented_hash and t.kind = 'access_token'
$$;
