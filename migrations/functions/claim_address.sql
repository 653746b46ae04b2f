-- Claims an address for an inbox; returns false if another organization has it. Addresses are unique across tenants, and
-- a released one stays reserved for its organization for 90 days.
create or replace function claim_address(requested_email text, claiming_org text, claiming_inbox text) returns boolean
language plpgsql security definer set search_path = public, pg_temp as $$
begin
  if claiming_org is distinct from nullif(current_setting('app.org_id', true), '') then
    raise exception 'claim_address is for the organization of the transaction' using errcode = 'insufficient_privilege';
  end if;
  insert into address_claims (email, org_id, inbox_id) values (requested_email, claiming_org, claiming_inbox)
  on conflict (email) do update set org_id = excluded.org_id, inbox_id = excluded.inbox_id, released_at = null
    where address_claims.released_at is not null
      and (address_claims.org_id = excluded.org_id or address_claims.released_at < now() - interval '90 days');
  return found;
end $$;
