-- Returns the environment of a resource of an organization; null for other organizations' resources and for those that
-- belong to no environment. Runs for each request that names one by its id, so PL/pgSQL, which keeps its plans.
create or replace function find_environment(requested_resource text, owner text)
returns text
language plpgsql stable set search_path = public, pg_temp as $$
begin
  return case left(requested_resource, 4)
    when 'inb_' then (select env_id from inboxes where id = requested_resource and org_id = owner)
    when 'msg_' then (select env_id from messages where id = requested_resource and org_id = owner)
    when 'thr_' then (select env_id from threads where id = requested_resource and org_id = owner)
    when 'drf_' then (select env_id from drafts where id = requested_resource and org_id = owner)
    when 'att_' then (select env_id from attachments where id = requested_resource and org_id = owner)
    when 'evt_' then (select env_id from events where id = requested_resource and org_id = owner)
    when 'whe_' then (select env_id from webhook_endpoints where id = requested_resource and org_id = owner)
    when 'whj_' then (select env_id from webhook_bulk_jobs where id = requested_resource and org_id = owner)
    when 'whd_' then (
      select e.env_id from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id
      where d.id = requested_resource and d.org_id = owner)
  end;
end
$$;
