-- Returns whether an organization may verify a domain name: no other organization has it verified. The lock, held until
-- the commit, serializes claims of one name. Without it two transactions could both find the name free, and the second
-- would fail on the unique index.
create or replace function claim_domain(requested_name text, claiming_org text) returns boolean
language plpgsql security definer set search_path = public, pg_temp as $$
begin
  if claiming_org is distinct from coalesce(nullif(current_setting('app.org_id', true), ''), claiming_org) then
    raise exception 'claim_domain is for the organization of the transaction' using errcode = 'insufficient_privilege';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('domain ' || requested_name, 0));
  return not exists (select from domains
    where domain_name = requested_name and verification_status = 'verified' and org_id <> claiming_org);
end $$;
