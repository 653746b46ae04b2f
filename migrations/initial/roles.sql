-- Roles belong to the cluster and may exist already, for another database.
do $$
declare
  name text;
begin
  foreach name in array array['agent_email_api', 'agent_email_worker', 'agent_email_lookup', 'agent_email_export',
    'agent_email_people', 'agent_email_staff']
  loop
    if not exists (select from pg_roles where rolname = name) then
      execute format('create role %I nologin', name);
    end if;
  end loop;
end $$;
-- Workers read exports as this role: row-level security binds it as it binds the API.
grant agent_email_api to agent_email_export;
grant agent_email_export to agent_email_worker;
-- The API switches to these roles; it must not have their privileges otherwise.
grant agent_email_people, agent_email_staff to agent_email_api with inherit false, set true;
-- The owner of a function must be a role the migrating user belongs to.
grant agent_email_lookup to current_user;
