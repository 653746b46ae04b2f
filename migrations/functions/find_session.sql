-- Finds the session of a request with its person, and their membership of one organization, before the tenant is known:
-- the requested one, or the only one. Returns no row if the session is unknown or revoked, or its person is suspended or
-- deleted. `active_sso`: the organization's active SSO configuration made the session. The organization is null
-- if the person is not a member of it, or belongs to several and requests none.
-- `manages_account`: the session may change the account itself. One of single sign-on may not, if the account has another way
-- in or belongs to other organizations: those who control the identity provider must not take the whole account over.
-- The status is `deleted` if the organization is closed. The environment is the requested one, or that of the requested resource, or production.
create or replace function find_session(
  presented_hash bytea, requested_org text, requested_env text, requested_resource text
)
returns table (
  session_id text, user_id text, kind text, method text, factors text[], sso_configuration_id text,
  manages_account boolean, authenticated_at timestamptz, expires_at timestamptz, last_seen_at timestamptz,
  membership_count integer, org_id text, org_status text, role text,
  env_id text, env_status text,
  active_sso boolean, require_mfa boolean, enforce_sso boolean, sso_satisfies_mfa boolean, session_max_age_hours integer,
  allowed_cidrs text[]
)
language sql stable security definer set search_path = public, pg_temp as $$
  select s.id, s.user_id, s.kind, s.method, s.factors, s.sso_configuration_id,
         case when s.method <> 'sso' then true else
           u.password_hash is null
           and not exists (select from oauth_identities i where i.user_id = u.id)
           and not exists (
             select from mfa_enrollments f
             where f.user_id = u.id and f.type = 'webauthn' and f.confirmed_at is not null)
           and not exists (
             select from members other
             where other.user_id = u.id and other.org_id <> coalesce(
               (select c.org_id from sso_configurations c where c.id = s.sso_configuration_id), ''))
         end,
         s.authenticated_at, s.expires_at, s.last_seen_at,
         memberships.count, o.id, case when o.deleted_at is null then o.status else 'deleted' end, m.role,
         e.id, e.status,
         exists (
           select from sso_configurations c
           where c.id = s.sso_configuration_id and c.org_id = o.id and c.status = 'active'),
         coalesce(p.require_mfa, false), coalesce(p.enforce_sso, false), coalesce(p.sso_satisfies_mfa, true),
         p.session_max_age_hours, coalesce(p.allowed_cidrs, '{}')
  from sessions s
  join users u on u.id = s.user_id and u.deleted_at is null and u.status = 'active'
  cross join lateral (
    select count(*)::integer as count, min(m.org_id) as only_org
    from members m join organizations o on o.id = m.org_id and o.deleted_at is null
    where m.user_id = s.user_id) memberships
  left join members m on m.user_id = s.user_id
    and m.org_id = coalesce(requested_org, case when memberships.count = 1 then memberships.only_org end)
  left join organizations o on o.id = m.org_id
  -- `offset 0`: called once, not for each environment.
  left join lateral (
    select find_environment(requested_resource, o.id) as env_id where requested_env is null offset 0) r on true
  left join environments e on e.org_id = o.id
    and case when requested_env is not null then e.id = requested_env
             when r.env_id is not null then e.id = r.env_id
             else e.slug = 'production' end
  left join organization_policies p on p.org_id = o.id
  where s.token_hash = presented_hash and s.revoked_at is null
$$;
