-- Whether an organization enforces single sign-on and has no owner who could get in without it: with a passkey, or a
-- password and a second factor. The role of tenants cannot read the factors of people.
create or replace function lacks_break_glass_owner(organization text) returns boolean
language sql stable security definer set search_path = public, pg_temp as $$
  select exists (select from organization_policies p where p.org_id = organization and p.enforce_sso)
    and not exists (
      select from members m join users u on u.id = m.user_id and u.deleted_at is null and u.status = 'active'
      where m.org_id = organization and m.role = 'owner' and exists (
        select from mfa_enrollments e
        where e.user_id = u.id and e.confirmed_at is not null
          and (e.type = 'webauthn' or u.password_hash is not null)))
$$;
