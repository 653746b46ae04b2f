-- Row-level security, as MikroORM generates it from the entities.

alter table "address_claims" enable row level security;
create policy "tenant" on "address_claims" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "address_claims" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "address_claims" to "agent_email_lookup" using (true) with check (true);

alter table "api_keys" enable row level security;
create policy "tenant" on "api_keys" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "api_keys" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "api_keys" to "agent_email_lookup" using (true) with check (true);
create policy "people" on "api_keys" to "agent_email_people" using (true) with check (true);
create policy "staff" on "api_keys" to "agent_email_staff" using (true) with check (true);

alter table "api_requests" enable row level security;
create policy "tenant" on "api_requests" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "api_requests" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "api_requests" to "agent_email_lookup" using (true) with check (true);

alter table "approval_digests" enable row level security;
create policy "tenant" on "approval_digests" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "approval_digests" to "agent_email_worker" using (true) with check (true);

alter table "approved_recipients" enable row level security;
create policy "tenant" on "approved_recipients" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "approved_recipients" to "agent_email_worker" using (true) with check (true);

alter table "attachments" enable row level security;
create policy "tenant" on "attachments" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "attachments" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "attachments" to "agent_email_lookup" using (true) with check (true);

alter table "audit_entries" enable row level security;
create policy "tenant" on "audit_entries" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "audit_entries" to "agent_email_worker" using (true) with check (true);
create policy "people" on "audit_entries" to "agent_email_people" using (true) with check (true);
create policy "staff" on "audit_entries" to "agent_email_staff" using (true) with check (true);

alter table "billing_customers" enable row level security;
create policy "tenant" on "billing_customers" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "billing_customers" to "agent_email_worker" using (true) with check (true);
create policy "staff" on "billing_customers" to "agent_email_staff" using (true) with check (true);

alter table "billing_meters" enable row level security;
create policy "tenant" on "billing_meters" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "billing_meters" to "agent_email_worker" using (true) with check (true);
create policy "staff" on "billing_meters" to "agent_email_staff" using (true) with check (true);

alter table "billing_subscriptions" enable row level security;
create policy "tenant" on "billing_subscriptions" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "billing_subscriptions" to "agent_email_worker" using (true) with check (true);
create policy "people" on "billing_subscriptions" to "agent_email_people" using (true) with check (true);
create policy "staff" on "billing_subscriptions" to "agent_email_staff" using (true) with check (true);

alter table "connections" enable row level security;
create policy "tenant" on "connections" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "connections" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "connections" to "agent_email_lookup" using (true) with check (true);
create policy "people" on "connections" to "agent_email_people" using (true) with check (true);
create policy "staff" on "connections" to "agent_email_staff" using (true) with check (true);

alter table "custom_limits" enable row level security;
create policy "tenant" on "custom_limits" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "custom_limits" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "custom_limits" to "agent_email_lookup" using (true) with check (true);
create policy "staff" on "custom_limits" to "agent_email_staff" using (true) with check (true);

alter table "dkim_keys" enable row level security;
create policy "tenant" on "dkim_keys" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "dkim_keys" to "agent_email_worker" using (true) with check (true);

alter table "domains" enable row level security;
create policy "tenant" on "domains" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "domains" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "domains" to "agent_email_lookup" using (true) with check (true);
create policy "people" on "domains" to "agent_email_people" using (true) with check (true);
create policy "staff" on "domains" to "agent_email_staff" using (true) with check (true);

alter table "drafts" enable row level security;
create policy "tenant" on "drafts" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "drafts" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "drafts" to "agent_email_lookup" using (true) with check (true);

alter table "environments" enable row level security;
create policy "tenant" on "environments" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "environments" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "environments" to "agent_email_lookup" using (true) with check (true);
create policy "people" on "environments" to "agent_email_people" using (true) with check (true);
create policy "staff" on "environments" to "agent_email_staff" using (true) with check (true);

alter table "events" enable row level security;
create policy "tenant" on "events" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "events" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "events" to "agent_email_lookup" using (true) with check (true);

alter table "exports" enable row level security;
create policy "tenant" on "exports" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "exports" to "agent_email_worker" using (true) with check (true);

alter table "idempotency_keys" enable row level security;
create policy "tenant" on "idempotency_keys" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "idempotency_keys" to "agent_email_worker" using (true) with check (true);

alter table "impersonated_operations" enable row level security;
create policy "tenant" on "impersonated_operations" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "impersonated_operations" to "agent_email_worker" using (true) with check (true);
create policy "staff" on "impersonated_operations" to "agent_email_staff" using (true) with check (true);

alter table "impersonations" enable row level security;
create policy "tenant" on "impersonations" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "impersonations" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "impersonations" to "agent_email_lookup" using (true) with check (true);
create policy "staff" on "impersonations" to "agent_email_staff" using (true) with check (true);

alter table "inbound_receipts" enable row level security;
create policy "tenant" on "inbound_receipts" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "inbound_receipts" to "agent_email_worker" using (true) with check (true);

alter table "inbox_credentials" enable row level security;
create policy "tenant" on "inbox_credentials" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "inbox_credentials" to "agent_email_worker" using (true) with check (true);

alter table "inbox_daily_sends" enable row level security;
create policy "tenant" on "inbox_daily_sends" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "inbox_daily_sends" to "agent_email_worker" using (true) with check (true);

alter table "inboxes" enable row level security;
create policy "tenant" on "inboxes" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "inboxes" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "inboxes" to "agent_email_lookup" using (true) with check (true);
create policy "staff" on "inboxes" to "agent_email_staff" using (true) with check (true);

alter table "injection_alarms" enable row level security;
create policy "tenant" on "injection_alarms" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "injection_alarms" to "agent_email_worker" using (true) with check (true);

alter table "invitations" enable row level security;
create policy "tenant" on "invitations" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "invitations" to "agent_email_worker" using (true) with check (true);
create policy "people" on "invitations" to "agent_email_people" using (true) with check (true);

alter table "limit_overrides" enable row level security;
create policy "tenant" on "limit_overrides" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "limit_overrides" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "limit_overrides" to "agent_email_lookup" using (true) with check (true);
create policy "staff" on "limit_overrides" to "agent_email_staff" using (true) with check (true);

alter table "list_entries" enable row level security;
create policy "tenant" on "list_entries" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "list_entries" to "agent_email_worker" using (true) with check (true);

alter table "members" enable row level security;
create policy "tenant" on "members" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "members" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "members" to "agent_email_lookup" using (true) with check (true);
create policy "people" on "members" to "agent_email_people" using (true) with check (true);
create policy "staff" on "members" to "agent_email_staff" using (true) with check (true);

alter table "message_recipients" enable row level security;
create policy "tenant" on "message_recipients" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "message_recipients" to "agent_email_worker" using (true) with check (true);
create policy "staff" on "message_recipients" to "agent_email_staff" using (true) with check (true);

alter table "message_search" enable row level security;
create policy "tenant" on "message_search" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "message_search" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "message_search" to "agent_email_lookup" using (true) with check (true);

alter table "messages" enable row level security;
create policy "tenant" on "messages" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "messages" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "messages" to "agent_email_lookup" using (true) with check (true);

alter table "meter_reports" enable row level security;
create policy "tenant" on "meter_reports" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "meter_reports" to "agent_email_worker" using (true) with check (true);
create policy "staff" on "meter_reports" to "agent_email_staff" using (true) with check (true);

alter table "metric_deltas" enable row level security;
create policy "tenant" on "metric_deltas" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "metric_deltas" to "agent_email_worker" using (true) with check (true);

alter table "metric_hours" enable row level security;
create policy "tenant" on "metric_hours" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "metric_hours" to "agent_email_worker" using (true) with check (true);

alter table "notifications" enable row level security;
create policy "tenant" on "notifications" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "notifications" to "agent_email_worker" using (true) with check (true);
create policy "people" on "notifications" to "agent_email_people" using (true) with check (true);
create policy "staff" on "notifications" to "agent_email_staff" using (true) with check (true);

alter table "organization_policies" enable row level security;
create policy "tenant" on "organization_policies" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "organization_policies" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "organization_policies" to "agent_email_lookup" using (true) with check (true);
create policy "people" on "organization_policies" to "agent_email_people" using (true) with check (true);
create policy "staff" on "organization_policies" to "agent_email_staff" using (true) with check (true);

alter table "organizations" enable row level security;
create policy "tenant" on "organizations" to "agent_email_api" using (id = nullif(current_setting('app.org_id', true), '')) with check (id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "organizations" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "organizations" to "agent_email_lookup" using (true) with check (true);
create policy "people" on "organizations" to "agent_email_people" using (true) with check (true);
create policy "staff" on "organizations" to "agent_email_staff" using (true) with check (true);

alter table "outbox" enable row level security;
create policy "tenant" on "outbox" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "outbox" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "outbox" to "agent_email_lookup" using (true) with check (true);
create policy "people" on "outbox" to "agent_email_people" using (true) with check (true);
create policy "staff" on "outbox" to "agent_email_staff" using (true) with check (true);

alter table "payment_graces" enable row level security;
create policy "tenant" on "payment_graces" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "payment_graces" to "agent_email_worker" using (true) with check (true);
create policy "staff" on "payment_graces" to "agent_email_staff" using (true) with check (true);

alter table "refusals" enable row level security;
create policy "tenant" on "refusals" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "refusals" to "agent_email_worker" using (true) with check (true);

alter table "released_slugs" enable row level security;
create policy "tenant" on "released_slugs" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "released_slugs" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "released_slugs" to "agent_email_lookup" using (true) with check (true);
create policy "people" on "released_slugs" to "agent_email_people" using (true) with check (true);

alter table "reputation_outcomes" enable row level security;
create policy "tenant" on "reputation_outcomes" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "reputation_outcomes" to "agent_email_worker" using (true) with check (true);

alter table "retention_policies" enable row level security;
create policy "tenant" on "retention_policies" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "retention_policies" to "agent_email_worker" using (true) with check (true);

alter table "send_attempts" enable row level security;
create policy "tenant" on "send_attempts" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "send_attempts" to "agent_email_worker" using (true) with check (true);
create policy "staff" on "send_attempts" to "agent_email_staff" using (true) with check (true);

alter table "shared_domain_caps" enable row level security;
create policy "tenant" on "shared_domain_caps" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "shared_domain_caps" to "agent_email_worker" using (true) with check (true);

alter table "sso_assertions" enable row level security;
create policy "tenant" on "sso_assertions" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "sso_assertions" to "agent_email_worker" using (true) with check (true);
create policy "people" on "sso_assertions" to "agent_email_people" using (true) with check (true);

alter table "sso_attempts" enable row level security;
create policy "tenant" on "sso_attempts" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "sso_attempts" to "agent_email_worker" using (true) with check (true);
create policy "people" on "sso_attempts" to "agent_email_people" using (true) with check (true);

alter table "sso_configurations" enable row level security;
create policy "tenant" on "sso_configurations" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "sso_configurations" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "sso_configurations" to "agent_email_lookup" using (true) with check (true);
create policy "people" on "sso_configurations" to "agent_email_people" using (true) with check (true);

alter table "sso_identities" enable row level security;
create policy "tenant" on "sso_identities" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "sso_identities" to "agent_email_worker" using (true) with check (true);
create policy "people" on "sso_identities" to "agent_email_people" using (true) with check (true);

alter table "sso_providers" enable row level security;
create policy "tenant" on "sso_providers" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "sso_providers" to "agent_email_worker" using (true) with check (true);
create policy "people" on "sso_providers" to "agent_email_people" using (true) with check (true);

alter table "sso_setup_links" enable row level security;
create policy "tenant" on "sso_setup_links" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "sso_setup_links" to "agent_email_worker" using (true) with check (true);
create policy "people" on "sso_setup_links" to "agent_email_people" using (true) with check (true);

alter table "sso_transactions" enable row level security;
create policy "tenant" on "sso_transactions" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "sso_transactions" to "agent_email_worker" using (true) with check (true);
create policy "people" on "sso_transactions" to "agent_email_people" using (true) with check (true);

alter table "stripe_events" enable row level security;
create policy "tenant" on "stripe_events" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "stripe_events" to "agent_email_worker" using (true) with check (true);
create policy "staff" on "stripe_events" to "agent_email_staff" using (true) with check (true);

alter table "suppressions" enable row level security;
create policy "tenant" on "suppressions" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "suppressions" to "agent_email_worker" using (true) with check (true);

alter table "suspensions" enable row level security;
create policy "tenant" on "suspensions" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "suspensions" to "agent_email_worker" using (true) with check (true);
create policy "staff" on "suspensions" to "agent_email_staff" using (true) with check (true);

alter table "thread_message_ids" enable row level security;
create policy "tenant" on "thread_message_ids" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "thread_message_ids" to "agent_email_worker" using (true) with check (true);

alter table "threads" enable row level security;
create policy "tenant" on "threads" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "threads" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "threads" to "agent_email_lookup" using (true) with check (true);

alter table "unclaimed_objects" enable row level security;
create policy "tenant" on "unclaimed_objects" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "unclaimed_objects" to "agent_email_worker" using (true) with check (true);

alter table "upgrade_requests" enable row level security;
create policy "tenant" on "upgrade_requests" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "upgrade_requests" to "agent_email_worker" using (true) with check (true);
create policy "staff" on "upgrade_requests" to "agent_email_staff" using (true) with check (true);

alter table "usage_alerts" enable row level security;
create policy "tenant" on "usage_alerts" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "usage_alerts" to "agent_email_worker" using (true) with check (true);

alter table "usage_counters" enable row level security;
create policy "tenant" on "usage_counters" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "usage_counters" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "usage_counters" to "agent_email_lookup" using (true) with check (true);
create policy "staff" on "usage_counters" to "agent_email_staff" using (true) with check (true);

alter table "usage_deltas" enable row level security;
create policy "tenant" on "usage_deltas" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "usage_deltas" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "usage_deltas" to "agent_email_lookup" using (true) with check (true);
create policy "staff" on "usage_deltas" to "agent_email_staff" using (true) with check (true);

alter table "usage_events" enable row level security;
create policy "tenant" on "usage_events" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "usage_events" to "agent_email_worker" using (true) with check (true);
create policy "staff" on "usage_events" to "agent_email_staff" using (true) with check (true);

alter table "usage_hours" enable row level security;
create policy "tenant" on "usage_hours" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "usage_hours" to "agent_email_worker" using (true) with check (true);
create policy "staff" on "usage_hours" to "agent_email_staff" using (true) with check (true);

alter table "webhook_bulk_jobs" enable row level security;
create policy "tenant" on "webhook_bulk_jobs" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "webhook_bulk_jobs" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "webhook_bulk_jobs" to "agent_email_lookup" using (true) with check (true);

alter table "webhook_deliveries" enable row level security;
create policy "tenant" on "webhook_deliveries" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "webhook_deliveries" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "webhook_deliveries" to "agent_email_lookup" using (true) with check (true);

alter table "webhook_delivery_attempts" enable row level security;
create policy "tenant" on "webhook_delivery_attempts" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "webhook_delivery_attempts" to "agent_email_worker" using (true) with check (true);

alter table "webhook_endpoints" enable row level security;
create policy "tenant" on "webhook_endpoints" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "webhook_endpoints" to "agent_email_worker" using (true) with check (true);
create policy "lookup" on "webhook_endpoints" to "agent_email_lookup" using (true) with check (true);

alter table "webhook_slots" enable row level security;
create policy "tenant" on "webhook_slots" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));
create policy "worker" on "webhook_slots" to "agent_email_worker" using (true) with check (true);
