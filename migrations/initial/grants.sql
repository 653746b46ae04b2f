-- What each role may do.

grant usage on schema public to agent_email_api, agent_email_worker, agent_email_lookup, agent_email_people,
  agent_email_staff, agent_email_export;

-- The API, under row-level security. The triggers of messages write message_search as the role that writes the message,
-- and an update reads; searches go through search_messages.
grant select, insert, update, delete on api_keys, approved_recipients, attachments, custom_limits, dkim_keys, domains,
  drafts, environments, events, idempotency_keys, inbox_credentials, inboxes, list_entries, message_recipients,
  messages, outbox, processes, rate_buckets, sso_configurations, suppressions, threads, unclaimed_objects,
  webhook_deliveries, webhook_endpoints to agent_email_api;
grant select, insert, update on billing_customers, exports, inbox_daily_sends, invitations, message_search,
  organization_policies, retention_policies, shared_domain_caps, sso_providers, sso_setup_links, thread_message_ids,
  usage_counters, usage_hours, webhook_bulk_jobs to agent_email_api;
grant select, update, delete on injection_alarms, members to agent_email_api;
grant select, delete on inbound_receipts to agent_email_api;
grant select, insert on audit_entries, installation_keys, metric_deltas, upgrade_requests, usage_deltas, usage_events
  to agent_email_api;
grant select, update on address_claims, organizations to agent_email_api;
grant insert on notifications, staff_audit_entries to agent_email_api;
grant select on api_requests, billing_meters, billing_subscriptions, installation, limit_overrides,
  metric_hours, mikro_orm_migrations, payment_graces, refusals, restores, send_attempts, sso_attempts, suspensions, toggles,
  usage_alerts, webhook_delivery_attempts to agent_email_api;
grant usage, select on sequence metric_deltas_id_seq, outbox_id_seq, usage_deltas_id_seq
  to agent_email_api;
grant select, insert, update (end_reason, ended_at, last_used_at) on connections to agent_email_api;
grant select (dedupe_key, id) on notifications to agent_email_api;
grant update (attempts, last_error) on outbox to agent_email_api;
grant select (org_id, provider_id, user_id) on sso_identities to agent_email_api;
grant select (avatar_url, deleted_at, email, id, name, status) on users to agent_email_api;
grant update (redacted, response_body, response_headers) on webhook_delivery_attempts to agent_email_api;

-- Workers see every tenant.
grant select, insert, update, delete on account_tokens, address_claims, api_keys, api_requests, approval_digests,
  approved_recipients, attachments, audit_entries, billing_customers, billing_meters, billing_subscriptions,
  connection_clients, connection_tokens, custom_limits, deletions, dkim_keys, domains, drafts, environments, events, exports, idempotency_keys,
  impersonated_operations, impersonations, inbound_receipts, inbox_credentials, inbox_daily_sends, inboxes,
  injection_alarms, invitations, known_devices, limit_overrides, list_entries, members, message_recipients, message_search, messages,
  meter_reports, metric_deltas, metric_hours, mfa_challenges, mfa_enrollments, mfa_recovery_codes,
  notifications, oauth_identities, oauth_transactions, organization_policies, organizations,
  outbox, payment_graces, processes, rate_buckets, refusals, reputation_outcomes, retention_policies, send_attempts,
  sessions, shared_domain_caps, sign_in_attempts, sign_ups, sso_assertions, sso_attempts, sso_configurations,
  sso_identities, sso_setup_links, sso_transactions, staff_members, stripe_events, suppressions, thread_message_ids,
  threads, unclaimed_objects, usage_alerts, usage_counters, usage_deltas, usage_events, usage_hours, users,
  webauthn_challenges, webhook_bulk_jobs, webhook_deliveries, webhook_delivery_attempts, webhook_endpoints,
  webhook_slots to agent_email_worker;
grant select, insert, delete on unattributed_reports to agent_email_worker;
grant select, insert, update on restores, suspensions, sweeps to agent_email_worker;
grant select, update, delete on connections, released_slugs, sso_providers, staff_jobs to agent_email_worker;
grant select, insert on installation_keys, staff_audit_entries to agent_email_worker;
grant select, update on announcements, installation to agent_email_worker;
grant select on mikro_orm_migrations, toggles, upgrade_requests to agent_email_worker;
grant usage, select on sequence metric_deltas_id_seq, outbox_id_seq, usage_deltas_id_seq
  to agent_email_worker;
grant usage on sequence restores_id_seq to agent_email_worker;

-- Owner of functions that run before the tenant is known.
grant select, insert, update, delete on released_slugs to agent_email_lookup;
grant select, insert, update on address_claims to agent_email_lookup;
grant select, delete on outbox to agent_email_lookup;
grant select, insert on api_requests, usage_deltas to agent_email_lookup;
grant select on api_keys, connection_tokens, connections, custom_limits, domains, environments, impersonations,
  limit_overrides, members, message_search, messages, organization_policies, organizations, sessions, sso_configurations, staff_members,
  usage_counters, users to agent_email_lookup;
grant usage, select on sequence usage_deltas_id_seq to agent_email_lookup;
grant select (env_id, id, org_id) on attachments to agent_email_lookup;
grant select (env_id, id, org_id) on drafts to agent_email_lookup;
grant select (env_id, id, org_id) on events to agent_email_lookup;
grant select (env_id, id, org_id, status) on inboxes to agent_email_lookup;
grant select (confirmed_at, type, user_id) on mfa_enrollments to agent_email_lookup;
grant select (user_id) on oauth_identities to agent_email_lookup;
grant select (env_id, id, org_id) on threads to agent_email_lookup;
grant select (env_id, id, org_id) on webhook_bulk_jobs to agent_email_lookup;
grant select (endpoint_id, id, org_id) on webhook_deliveries to agent_email_lookup;
grant select (env_id, id, org_id) on webhook_endpoints to agent_email_lookup;

-- Sign-in and people: users, sessions, factors and memberships of every organization, and no mail.
grant select, insert, update, delete on account_tokens, connection_clients, connection_tokens, known_devices, members,
  mfa_challenges, mfa_enrollments,
  mfa_recovery_codes, oauth_identities, oauth_transactions, sign_in_attempts, sign_ups, sso_assertions, sso_attempts,
  sso_configurations, sso_identities, sso_transactions, webauthn_challenges to agent_email_people;
grant select, insert, update on deletions, organizations, sessions, sso_providers, users to agent_email_people;
grant select, insert on api_keys, environments, notifications, outbox to agent_email_people;
grant select, update on invitations, sso_setup_links to agent_email_people;
grant insert on audit_entries to agent_email_people;
grant select on announcements, billing_subscriptions, organization_policies, released_slugs, staff_members, toggles to
  agent_email_people;
grant usage, select on sequence outbox_id_seq to agent_email_people;
grant select (action, org_id, resource_id) on audit_entries to agent_email_people;
grant select, update (end_reason, ended_at) on connections to agent_email_people;
grant select (domain_name, org_id, verification_status) on domains to agent_email_people;

-- Staff: organizations, people, keys and usage of every tenant, and no mail.
grant select, insert, update, delete on limit_overrides, outbox, staff_members to agent_email_staff;
grant select, insert, update on announcements, suspensions, toggles to agent_email_staff;
grant select, insert on audit_entries, impersonated_operations, staff_audit_entries, staff_jobs, usage_events to
  agent_email_staff;
grant select, update on payment_graces, upgrade_requests to agent_email_staff;
grant delete on known_devices, mfa_enrollments, mfa_recovery_codes to agent_email_staff;
grant insert on impersonations, notifications to agent_email_staff;
grant select on billing_customers, billing_meters, billing_subscriptions, custom_limits, deletions, domains,
  environments, inboxes, members, meter_reports, organization_policies, organizations, processes, sweeps,
  usage_counters, usage_deltas, usage_hours to agent_email_staff;
grant usage, select on sequence outbox_id_seq to agent_email_staff;
grant select (allowed_cidrs, created_at, created_by_key_id, created_by_user_id, env_id, expires_at, id, inbox_id,
  last_four, last_used_at, name, org_id, permissions, previous_expires_at, previous_last_four, revoked_at), update
  (permissions, revoked_at) on api_keys to agent_email_staff;
grant select (client_name, ended_at, id, org_id, user_id), update (end_reason, ended_at) on connections to
  agent_email_staff;
grant update (ended_at, generation, reconciled_at, status) on deletions to agent_email_staff;
grant update (status, updated_at) on environments to agent_email_staff;
grant update (calls) on impersonated_operations to agent_email_staff;
grant select (allows_write, created_at, ended_at, expires_at, id, ip, org_id, reason, reported_at, request_id,
  staff_id, staff_session_id), update (ended_at, reported_at) on impersonations to agent_email_staff;
grant update (status, updated_at) on inboxes to agent_email_staff;
grant select (user_id) on known_devices to agent_email_staff;
grant update (role) on members to agent_email_staff;
grant select (message_id, position, status) on message_recipients to agent_email_staff;
grant select (confirmed_at, created_at, id, last_used_at, name, type, user_id) on mfa_enrollments to
  agent_email_staff;
grant select (user_id) on mfa_recovery_codes to agent_email_staff;
grant select (attempts, created_at, dedupe_key, email, generation, id, last_error, next_attempt_at, org_id, sent_at,
  status, template, user_id), update (attempts, generation, next_attempt_at, reconciled_at, status) on notifications to
  agent_email_staff;
grant update (status, tier, updated_at) on organizations to agent_email_staff;
grant select (message_id, position, state) on send_attempts to agent_email_staff;
grant select (authenticated_at, created_at, expires_at, factors, id, ip, kind, last_seen_at, method, revoked_at,
  sso_configuration_id, user_agent, user_id), update (revoked_at) on sessions to agent_email_staff;
grant select (avatar_url, created_at, deleted_at, email, email_verified_at, id, name, status, updated_at), update
  (status, updated_at) on users to agent_email_staff;

-- Exports: besides what the API may read, what an organization knows of its people.
grant select on notifications to agent_email_export;
grant select (email, id, name) on users to agent_email_export;

-- These see the rows of every tenant, so each checks the organization itself.
grant create on schema public to agent_email_lookup;
alter function claim_address owner to agent_email_lookup;
alter function claim_domain owner to agent_email_lookup;
alter function claim_slug owner to agent_email_lookup;
alter function count_api_calls owner to agent_email_lookup;
alter function delete_dispatched owner to agent_email_lookup;
alter function find_api_key owner to agent_email_lookup;
alter function find_connection owner to agent_email_lookup;
alter function find_impersonation owner to agent_email_lookup;
alter function find_session owner to agent_email_lookup;
alter function lacks_break_glass_owner owner to agent_email_lookup;
alter function oldest_waiting_starts owner to agent_email_lookup;
alter function record_api_requests owner to agent_email_lookup;
alter function search_messages owner to agent_email_lookup;
revoke create on schema public from agent_email_lookup;
revoke all on function claim_address, claim_domain, claim_slug, count_api_calls, delete_dispatched, find_api_key,
  find_connection, find_environment, find_impersonation, find_session, lacks_break_glass_owner, oldest_waiting_starts,
  record_api_requests, search_messages from public;
grant execute on function claim_address, claim_domain, count_api_calls, delete_dispatched, find_api_key,
  find_impersonation, find_session, oldest_waiting_starts to agent_email_api, agent_email_worker;
grant execute on function find_environment to agent_email_lookup;
grant execute on function lacks_break_glass_owner to agent_email_api, agent_email_worker, agent_email_people,
  agent_email_staff;
grant execute on function find_connection, record_api_requests, search_messages to agent_email_api;
