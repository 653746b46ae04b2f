-- Finds the impersonation of a request with its organization and environment, before the tenant is known. Returns no row
-- unless everything it depends on still holds: it has neither ended nor expired; the staff member is one, with the role it
-- needs, and active; the session that began it is signed in (staff sign in every twelve hours); and the organization, if
-- it asks for consent, has given it. A browser also presents its own session, which must be the one that began it.
create or replace function find_impersonation(
  presented_hash bytea, browser_session_hash bytea, requested_env text, requested_resource text
)
returns table (
  impersonation_id text, staff_id text, staff_session_id text, allows_write boolean, expires_at timestamptz,
  org_id text, org_status text, env_id text, env_status text
)
language sql stable security definer set search_path = public, pg_temp as $$
  select i.id, i.staff_id, i.staff_session_id, i.allows_write,
         -- When it ends by itself. `least` ignores nulls.
         least(i.expires_at, begun.expires_at, begun.authenticated_at + interval '12 hours',
           case when p.support_access = 'ask' then p.support_access_until end),
         o.id, case when o.deleted_at is null then o.status else 'deleted' end, e.id, e.status
  from impersonations i
  join staff_members s on s.user_id = i.staff_id and (s.role = 'admin' or not i.allows_write)
  join users u on u.id = i.staff_id and u.deleted_at is null and u.status = 'active'
  join sessions begun on begun.id = i.staff_session_id and begun.revoked_at is null and begun.expires_at > now()
    and begun.authenticated_at > now() - interval '12 hours'
    and (browser_session_hash is null or begun.token_hash = browser_session_hash)
  join organizations o on o.id = i.org_id
  left join organization_policies p on p.org_id = o.id
  -- `offset 0`: called once, not for each environment.
  left join lateral (
    select find_environment(requested_resource, o.id) as env_id where requested_env is null offset 0) r on true
  left join environments e on e.org_id = o.id
    and case when requested_env is not null then e.id = requested_env
             when r.env_id is not null then e.id = r.env_id
             else e.slug = 'production' end
  where i.token_hash = presented_hash and i.ended_at is null and i.expires_at > now()
    and (coalesce(p.support_access, 'allowed') = 'allowed' or p.support_access_until > now())
$$;
