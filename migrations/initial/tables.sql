-- Tables, indexes, checks and foreign keys, as MikroORM generates them from the entities.

create table "address_claims" (
  "email" text not null,
  "org_id" text collate "C" not null,
  "inbox_id" text collate "C" not null,
  "released_at" timestamptz(3) null,
  primary key ("email")
);
create index "address_claims_org_id_index" on "address_claims" ("org_id");
create index "address_claims_released_index" on "address_claims" ("released_at") where "released_at" is not null;

create table "announcements" (
  "id" text collate "C" not null,
  "title" text not null,
  "text" text not null,
  "audience" text not null,
  "tier" text null,
  "organization_ids" text[] not null default '{}',
  "delivery" text not null,
  "starts_at" timestamptz(3) not null,
  "ends_at" timestamptz(3) null,
  "created_by" text collate "C" not null,
  "created_at" timestamptz(3) not null default now(),
  "withdrawn_at" timestamptz(3) null,
  "mailed_to" text collate "C" null,
  "mailed_count" int not null default 0,
  "mailed_at" timestamptz(3) null,
  "reconciled_at" timestamptz(3) null,
  primary key ("id")
);
create index "announcements_shown_index" on "announcements" ("starts_at") where "withdrawn_at" is null and "delivery" = 'shown';
create index "announcements_unmailed_index" on "announcements" ("starts_at") where "withdrawn_at" is null and "delivery" = 'mailed' and "mailed_at" is null;
alter table "announcements" add constraint "announcements_audience" check (audience = ANY (ARRAY['all'::text, 'tier'::text, 'organizations'::text, 'owners'::text]));
alter table "announcements" add constraint "announcements_delivery" check (delivery = ANY (ARRAY['shown'::text, 'mailed'::text]));

create table "api_requests" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" not null,
  "method" text not null,
  "path" text not null,
  "status" smallint not null,
  "code" text null,
  "credential_kind" text not null,
  "credential_id" text collate "C" not null,
  "duration_ms" int not null,
  primary key ("id")
);
create index "api_requests_org_id_id_index" on "api_requests" ("org_id", "id");
create index "api_requests_credential_id_id_index" on "api_requests" ("credential_id", "id");
create index "api_requests_errors_index" on "api_requests" ("org_id", "status", "id") where "status" >= 400;

create table "connection_clients" (
  "id_hash" bytea not null,
  "metadata" jsonb not null,
  "network_hash" bytea not null,
  "last_used_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id_hash")
);
create index "connection_clients_network_hash_created_at_index" on "connection_clients" ("network_hash", "created_at");
create index "connection_clients_last_used_at_index" on "connection_clients" ("last_used_at");

create table "deletions" (
  "id" text collate "C" not null,
  "kind" text not null,
  "subject_id" text collate "C" not null,
  "deleted_by" text collate "C" not null,
  "account_deletion_id" text collate "C" null,
  "status" text not null default 'waiting',
  "generation" int not null default 1,
  "deleted_at" timestamptz(3) not null,
  "due_at" timestamptz(3) not null,
  "purge_started_at" timestamptz(3) null,
  "ended_at" timestamptz(3) null,
  "reconciled_at" timestamptz(3) null,
  primary key ("id")
);
create index "deletions_account_deletion_id_index" on "deletions" ("account_deletion_id");
create index "deletions_open_index" on "deletions" ("reconciled_at") where "status" in ('waiting', 'purging');
create unique index "deletions_subject_unique" on "deletions" ("subject_id") where "status" in ('waiting', 'purging', 'stopped');
alter table "deletions" add constraint "deletions_kind" check (kind = ANY (ARRAY['account'::text, 'organization'::text]));
alter table "deletions" add constraint "deletions_status" check (status = ANY (ARRAY['waiting'::text, 'recovered'::text, 'purging'::text, 'purged'::text, 'stopped'::text]));

create table "idempotency_keys" (
  "id" bytea not null,
  "org_id" text collate "C" not null,
  "request_hash" bytea not null,
  "status" smallint not null,
  "content_type" text not null,
  "body" bytea null,
  "resource_id" text collate "C" null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "idempotency_keys_created_at_index" on "idempotency_keys" ("created_at");
create index "idempotency_keys_resource_index" on "idempotency_keys" ("resource_id") where "resource_id" is not null;

create table "installation" (
  "id" text not null,
  "system_identifier" text not null,
  "progress" bigint not null default 0,
  "advanced_at" timestamptz(3) null,
  primary key ("id")
);

create table "installation_keys" (
  "kind" text not null,
  "key_id" text not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("kind", "key_id")
);
alter table "installation_keys" add constraint "installation_keys_kind" check (kind = ANY (ARRAY['encryption'::text, 'signing'::text]));

create table "metric_deltas" (
  "id" bigserial primary key,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" not null,
  "inbox_id" text collate "C" not null,
  "hour" timestamptz(3) not null,
  "sent" int not null default 0,
  "delivered" int not null default 0,
  "bounced" int not null default 0,
  "complained" int not null default 0,
  "rejected" int not null default 0,
  "received" int not null default 0,
  "attempted" int not null default 0
);
create index "metric_deltas_env_id_hour_index" on "metric_deltas" ("env_id", "hour");

create table "organizations" (
  "id" text collate "C" not null,
  "name" text not null,
  "slug" text not null,
  "status" text not null default 'active',
  "tier" text not null default 'enterprise',
  "deleted_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  "updated_at" timestamptz(3) not null default now(),
  primary key ("id")
);
alter table "organizations" add constraint "organizations_slug_unique" unique ("slug");
alter table "organizations" add constraint "organizations_tier" check (tier = ANY (ARRAY['free'::text, 'developer'::text, 'business'::text, 'enterprise'::text]));

create table "notifications" (
  "id" text collate "C" not null,
  "org_id" text collate "C" null,
  "user_id" text collate "C" null,
  "email" text not null,
  "template" text not null,
  "params" jsonb not null,
  "sealed_params" bytea null,
  "dedupe_key" text not null,
  "status" text not null default 'pending',
  "attempts" int not null default 0,
  "generation" int not null default 1,
  "next_attempt_at" timestamptz(3) null,
  "last_error" text null,
  "reconciled_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  "sent_at" timestamptz(3) null,
  primary key ("id")
);
alter table "notifications" add constraint "notifications_dedupe_key_unique" unique ("dedupe_key");
create index "notifications_org_id_id_index" on "notifications" ("org_id", "id");
create index "notifications_failed_index" on "notifications" ("created_at") where "status" = 'failed';
create index "notifications_failed_list_index" on "notifications" ("id") where "status" = 'failed';
create index "notifications_unsent_index" on "notifications" ("next_attempt_at") where "status" in ('pending', 'sending');

create table "meter_reports" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "subscription_id" text collate "C" not null,
  "counter" text not null,
  "window_start" timestamptz(3) not null,
  "units" bigint not null,
  "created_at" timestamptz(3) not null default now(),
  "sent_at" timestamptz(3) null,
  "reported_at" timestamptz(3) null,
  "refused_at" timestamptz(3) null,
  "refusal" text null,
  primary key ("id")
);
create index "meter_reports_org_id_id_index" on "meter_reports" ("org_id", "id");
create index "meter_reports_created_at_index" on "meter_reports" ("created_at");
create index "meter_reports_pending_index" on "meter_reports" ("window_start", "id") where "reported_at" is null and "refused_at" is null;
create index "meter_reports_refused_index" on "meter_reports" ("refused_at") where "refused_at" is not null;
alter table "meter_reports" add constraint "meter_reports_positive" check (units > 0);

create table "limit_overrides" (
  "org_id" text collate "C" not null,
  "resource" text not null,
  "amount" bigint null,
  "kind" text not null,
  "expires_at" timestamptz(3) null,
  "reason" text not null,
  "created_by" text not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("org_id", "resource")
);
alter table "limit_overrides" add constraint "limit_overrides_not_negative" check (amount >= 0);
alter table "limit_overrides" add constraint "limit_overrides_resource" check (resource = ANY (ARRAY['messages_sent'::text, 'messages_received'::text, 'storage_bytes'::text, 'api_calls'::text, 'webhook_deliveries'::text, 'inboxes'::text, 'domains'::text]));
alter table "limit_overrides" add constraint "limit_overrides_kind" check (kind = ANY (ARRAY['soft'::text, 'hard'::text]));

create table "invitations" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "email" text not null,
  "role" text not null,
  "token_hash" bytea not null,
  "invited_by_user_id" text collate "C" null,
  "invited_by_key_id" text collate "C" null,
  "expires_at" timestamptz(3) not null,
  "accepted_at" timestamptz(3) null,
  "accepted_by_user_id" text collate "C" null,
  "revoked_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
alter table "invitations" add constraint "invitations_token_hash_unique" unique ("token_hash");
create index "invitations_org_id_id_index" on "invitations" ("org_id", "id");
create index "invitations_org_id_email_index" on "invitations" ("org_id", "email");
alter table "invitations" add constraint "invitations_role" check (role = ANY (ARRAY['owner'::text, 'admin'::text, 'developer'::text, 'viewer'::text]));

create table "impersonations" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "staff_id" text collate "C" not null,
  "staff_session_id" text collate "C" not null,
  "token_hash" bytea not null,
  "allows_write" boolean not null,
  "reason" text not null,
  "ip" text not null,
  "request_id" text not null,
  "expires_at" timestamptz(3) not null,
  "ended_at" timestamptz(3) null,
  "reported_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "impersonations_org_id_id_index" on "impersonations" ("org_id", "id");
create index "impersonations_staff_id_id_index" on "impersonations" ("staff_id", "id");
create index "impersonations_unreported_index" on "impersonations" ("id") where "reported_at" is null;
alter table "impersonations" add constraint "impersonations_token_hash_unique" unique ("token_hash");

create table "impersonated_operations" (
  "impersonation_id" text collate "C" not null,
  "operation" text not null,
  "resource_id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "is_change" boolean not null,
  "calls" int not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("impersonation_id", "operation", "resource_id")
);
create index "impersonated_operations_org_id_index" on "impersonated_operations" ("org_id");

create table "exports" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "requested_by" text collate "C" not null,
  "status" text not null default 'queued',
  "status_detail" text null,
  "upload_id" text null,
  "storage_key" text not null,
  "rows_done" bigint not null default '0',
  "rows_total" bigint not null default '0',
  "files_done" bigint not null default '0',
  "files_total" bigint not null default '0',
  "size_bytes" bigint not null default '0',
  "started_at" timestamptz(3) null,
  "completed_at" timestamptz(3) null,
  "expires_at" timestamptz(3) null,
  "reconciled_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  "updated_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "exports_org_id_id_index" on "exports" ("org_id", "id");
create unique index "exports_running_unique" on "exports" ("org_id") where "status" in ('queued', 'running');
create index "exports_failed_index" on "exports" ("completed_at") where "status" = 'failed';
create index "exports_cleanup_index" on "exports" ("updated_at") where "status" = 'ready' or "upload_id" is not null;

create table "environments" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "name" text not null,
  "slug" text not null,
  "kind" text not null,
  "status" text not null default 'active',
  "created_at" timestamptz(3) not null default now(),
  "updated_at" timestamptz(3) not null default now(),
  primary key ("id")
);
alter table "environments" add constraint "environments_org_id_name_unique" unique ("org_id", "name");
alter table "environments" add constraint "environments_org_id_slug_unique" unique ("org_id", "slug");

create table "metric_hours" (
  "env_id" text collate "C" not null,
  "subject" text collate "C" not null,
  "hour" timestamptz(3) not null,
  "org_id" text collate "C" not null,
  "sent" int not null default 0,
  "delivered" int not null default 0,
  "bounced" int not null default 0,
  "complained" int not null default 0,
  "rejected" int not null default 0,
  "received" int not null default 0,
  "attempted" int not null default 0,
  primary key ("env_id", "subject", "hour")
);

create table "events" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" not null,
  "inbox_id" text collate "C" null,
  "type" text not null,
  "data" jsonb not null,
  "data_bytes" int generated always as (octet_length((data)::text)) stored not null,
  "message_id" text generated always as (data ->> 'message_id'::text) stored collate "C" null,
  "about_id" text collate "C" null,
  "redacted" boolean not null default false,
  "test" boolean not null default false,
  "created_at" timestamptz(3) not null default now(),
  "transaction_id" xid8 not null default pg_current_xact_id(),
  primary key ("id")
);
create index "events_env_id_id_index" on "events" ("env_id", "id");
create index "events_env_id_transaction_id_id_index" on "events" ("env_id", "transaction_id", "id");
create index "events_env_id_type_transaction_id_id_index" on "events" ("env_id", "type", "transaction_id", "id");
create index "events_inbox_index" on "events" ("inbox_id", "transaction_id", "id") where "inbox_id" is not null;
create index "events_message_index" on "events" ("message_id", "transaction_id", "id") where "message_id" is not null;
create index "events_about_index" on "events" ("about_id") where "about_id" is not null;
create index "events_organization_index" on "events" ("org_id", "transaction_id", "id") where "inbox_id" is null;

create table "domains" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "domain_name" text not null,
  "client_id" text null,
  "ownership_token" text not null,
  "verification_status" text not null default 'pending',
  "spf_status" text not null default 'pending',
  "dkim_status" text not null default 'pending',
  "dmarc_status" text not null default 'pending',
  "status_reason" text null,
  "observed" jsonb not null,
  "failed_checks" int not null default 0,
  "generation" int not null default 1,
  "generation_started_at" timestamptz(3) not null,
  "next_check_at" timestamptz(3) null,
  "last_checked_at" timestamptz(3) null,
  "verified_at" timestamptz(3) null,
  "reconciled_at" timestamptz(3) null,
  "catch_all_inbox_id" text collate "C" null,
  "created_at" timestamptz(3) not null default now(),
  "updated_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "domains_org_id_id_index" on "domains" ("org_id", "id");
create index "domains_catch_all_index" on "domains" ("catch_all_inbox_id") where "catch_all_inbox_id" is not null;
create index "domains_next_check_index" on "domains" ("next_check_at") where "next_check_at" is not null;
alter table "domains" add constraint "domains_org_id_domain_name_unique" unique ("org_id", "domain_name");
create unique index "domains_client_id_unique" on "domains" ("org_id", "client_id");
create unique index "domains_verified_name_unique" on "domains" ("domain_name") where "verification_status" = 'verified';

create table "inboxes" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" not null,
  "email" text not null,
  "username" text not null,
  "domain" text not null,
  "domain_id" text collate "C" null,
  "aliases" text[] not null default '{}',
  "display_name" text null,
  "client_id" text null,
  "status" text not null default 'active',
  "send_paused" boolean not null default false,
  "send_paused_reason" text null,
  "send_paused_by_kind" text null,
  "send_paused_by_id" text null,
  "send_paused_at" timestamptz(3) null,
  "reputation_paused" boolean not null default false,
  "send_resumed_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  "updated_at" timestamptz(3) not null default now(),
  "deleted_at" timestamptz(3) null,
  "purge_requested_at" timestamptz(3) null,
  "purged_at" timestamptz(3) null,
  "reconciled_at" timestamptz(3) null,
  primary key ("id")
);
create index "inboxes_env_id_id_index" on "inboxes" ("env_id", "id");
create index "inboxes_domain_id_index" on "inboxes" ("domain_id");
create index "inboxes_reputation_paused_index" on "inboxes" ("id") where "reputation_paused" and "deleted_at" is null;
create index "inboxes_pending_purge_index" on "inboxes" ("purge_requested_at") where "purge_requested_at" is not null and "purged_at" is null;
create unique index "inboxes_email_unique" on "inboxes" ("email") where "deleted_at" is null;
create unique index "inboxes_client_id_unique" on "inboxes" ("org_id", "client_id") where "deleted_at" is null;

create table "list_entries" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "direction" text not null,
  "effect" text not null,
  "entry" text not null,
  "authenticated" boolean not null default false,
  "env_id" text collate "C" null,
  "inbox_id" text collate "C" null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "list_entries_org_id_direction_effect_id_index" on "list_entries" ("org_id", "direction", "effect", "id");
create unique index "list_entries_unique" on "list_entries" ("org_id", "direction", "entry", "effect", "env_id", "inbox_id") nulls not distinct;

create table "injection_alarms" (
  "message_id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" not null,
  "inbox_id" text collate "C" not null,
  "thread_id" text collate "C" not null,
  "addresses" text[] null,
  "ends_at" timestamptz(3) not null,
  primary key ("message_id")
);
create index "injection_alarms_org_id_inbox_id_ends_at_index" on "injection_alarms" ("org_id", "inbox_id", "ends_at");
create index "injection_alarms_ends_at_index" on "injection_alarms" ("ends_at");

create table "inbox_daily_sends" (
  "inbox_id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "day" date not null,
  "messages" int not null,
  primary key ("inbox_id")
);

create table "inbox_credentials" (
  "inbox_id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "password_hash" bytea not null,
  "rotated_at" timestamptz(3) not null,
  primary key ("inbox_id")
);

create table "drafts" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" not null,
  "inbox_id" text collate "C" not null,
  "thread_id" text null,
  "in_reply_to" text null,
  "forwarded_message_id" text collate "C" null,
  "subject" text null,
  "to" jsonb not null,
  "cc" jsonb not null,
  "bcc" jsonb not null,
  "reply_to" jsonb not null,
  "text_body" text null,
  "html_body" text null,
  "labels" text[] not null default '{}',
  "headers" jsonb not null,
  "unsubscribe" boolean not null default false,
  "send_at" timestamptz(3) null,
  "send_status" text not null default 'draft',
  "send_error" text null,
  "schedule_version" int not null default 0,
  "requested_by_kind" text null,
  "requested_by_id" text collate "C" null,
  "approval_requested_at" timestamptz(3) null,
  "approval_expires_at" timestamptz(3) null,
  "approval_generation" int not null default 0,
  "approval_announced" boolean not null default false,
  "approval_review" jsonb null,
  "approval_history" jsonb null,
  "approved_version" int null,
  "decided_by_id" text collate "C" null,
  "decided_at" timestamptz(3) null,
  "decision_note" text null,
  "submission" jsonb null,
  "version" int not null default 1,
  "created_by_kind" text null,
  "created_by_id" text collate "C" null,
  "last_edited_by_kind" text null,
  "last_edited_by_id" text collate "C" null,
  "reconciled_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  "updated_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "drafts_inbox_id_id_index" on "drafts" ("inbox_id", "id");
create index "drafts_org_id_id_index" on "drafts" ("org_id", "id");
create index "drafts_pending_approval_index" on "drafts" ("org_id", "id") where "send_status" = 'pending_approval';
create index "drafts_submission_index" on "drafts" ("inbox_id", ("submission" ->> 'messageId')) where "submission" is not null;
create index "drafts_scheduled_index" on "drafts" ("send_at") where "send_status" = 'scheduled';

create table "dkim_keys" (
  "domain_id" text collate "C" not null,
  "selector" text not null,
  "org_id" text collate "C" not null,
  "state" text not null,
  "public_key" text not null,
  "private_key" bytea not null,
  "created_at" timestamptz(3) not null default now(),
  "retired_at" timestamptz(3) null,
  primary key ("domain_id", "selector")
);

create table "custom_limits" (
  "org_id" text collate "C" not null,
  "counter" text not null,
  "amount" bigint null,
  "warning_percent" smallint null,
  "updated_at" timestamptz(3) not null,
  primary key ("org_id", "counter")
);
alter table "custom_limits" add constraint "custom_limits_not_negative" check (amount >= 0);
alter table "custom_limits" add constraint "custom_limits_warning" check (warning_percent >= 1 and warning_percent <= 99);

create table "billing_subscriptions" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "status" text null,
  "price_id" text collate "C" null,
  "tier" text null,
  "current_period_end" timestamptz(3) null,
  "cancel_at" timestamptz(3) null,
  "scheduled_tier" text null,
  "open_invoice_id" text collate "C" null,
  "open_invoice_url" text null,
  "next_attempt_at" timestamptz(3) null,
  "ended_at" timestamptz(3) null,
  "problem" text null,
  "read_version" int not null default 0,
  "requested_at" timestamptz(3) null,
  "synced_at" timestamptz(3) null,
  "reconciled_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "billing_subscriptions_org_id_id_index" on "billing_subscriptions" ("org_id", "id");
create index "billing_subscriptions_requested_index" on "billing_subscriptions" ("requested_at") where "requested_at" is not null;
create index "billing_subscriptions_problem_index" on "billing_subscriptions" ("synced_at") where "problem" is not null and "ended_at" is null;
create index "billing_subscriptions_open_index" on "billing_subscriptions" ("synced_at") where "ended_at" is null;

create table "billing_meters" (
  "subscription_id" text collate "C" not null,
  "counter" text not null,
  "org_id" text collate "C" not null,
  "customer_id" text collate "C" not null,
  "price_id" text collate "C" not null,
  "meter_id" text collate "C" not null,
  "event_name" text not null,
  "customer_field" text not null,
  "value_field" text not null,
  "settled_until" timestamptz(3) not null,
  "highest_amount" bigint null,
  "ended_at" timestamptz(3) null,
  primary key ("subscription_id", "counter")
);
create index "billing_meters_org_id_index" on "billing_meters" ("org_id");
create index "billing_meters_settled_until_index" on "billing_meters" ("settled_until");

create table "billing_customers" (
  "org_id" text collate "C" not null,
  "customer_id" text collate "C" not null,
  "applied_tier" text null,
  "checkout_session_id" text collate "C" null,
  "created_at" timestamptz(3) not null default now(),
  "updated_at" timestamptz(3) not null default now(),
  primary key ("org_id")
);
alter table "billing_customers" add constraint "billing_customers_customer_id_unique" unique ("customer_id");

create table "audit_entries" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "action" text not null,
  "actor_kind" text not null,
  "actor_id" text not null,
  "credential_id" text collate "C" null,
  "resource_type" text not null,
  "resource_id" text not null,
  "reason" text null,
  "details" jsonb not null,
  "ip" text null,
  "request_id" text null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "audit_entries_org_id_id_index" on "audit_entries" ("org_id", "id");
create index "audit_entries_org_id_actor_id_id_index" on "audit_entries" ("org_id", "actor_id", "id");
create index "audit_entries_org_id_resource_id_id_index" on "audit_entries" ("org_id", "resource_id", "id");
create index "audit_entries_org_id_resource_type_id_index" on "audit_entries" ("org_id", "resource_type", "id");
create index "audit_entries_org_id_action_id_index" on "audit_entries" ("org_id", "action", "id");

create table "approved_recipients" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" not null,
  "inbox_id" text collate "C" not null,
  "email" text not null,
  "approved_by" text collate "C" not null,
  "expires_at" timestamptz(3) not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "approved_recipients_inbox_id_id_index" on "approved_recipients" ("inbox_id", "id");
create index "approved_recipients_expires_at_index" on "approved_recipients" ("expires_at");
alter table "approved_recipients" add constraint "approved_recipients_inbox_id_email_unique" unique ("inbox_id", "email");

create table "approval_digests" (
  "org_id" text collate "C" not null,
  "sent_at" timestamptz(3) not null,
  primary key ("org_id")
);

create table "api_keys" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" null,
  "inbox_id" text collate "C" null,
  "name" text not null,
  "token_hash" bytea not null,
  "last_four" text not null,
  "previous_token_hash" bytea null,
  "previous_last_four" text null,
  "previous_expires_at" timestamptz(3) null,
  "previous_last_used_at" timestamptz(3) null,
  "permissions" text[] not null,
  "created_by_key_id" text collate "C" null,
  "created_by_user_id" text collate "C" null,
  "expires_at" timestamptz(3) null,
  "expiry_notified_at" timestamptz(3) null,
  "revoked_at" timestamptz(3) null,
  "allowed_cidrs" text[] not null default '{}',
  "last_used_at" timestamptz(3) null,
  "last_used_from" text null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
alter table "api_keys" add constraint "api_keys_token_hash_unique" unique ("token_hash");
alter table "api_keys" add constraint "api_keys_previous_token_hash_unique" unique ("previous_token_hash");
create index "api_keys_org_id_id_index" on "api_keys" ("org_id", "id");
create index "api_keys_created_by_key_id_index" on "api_keys" ("created_by_key_id");
create index "api_keys_org_id_created_by_user_id_index" on "api_keys" ("org_id", "created_by_user_id");
create index "api_keys_expires_at_index" on "api_keys" ("expires_at") where "revoked_at" is null and "expires_at" is not null;

create table "organization_policies" (
  "org_id" text collate "C" not null,
  "require_mfa" boolean not null default false,
  "enforce_sso" boolean not null default false,
  "sso_satisfies_mfa" boolean not null default true,
  "session_max_age_hours" int null,
  "allowed_cidrs" text[] not null default '{}',
  "max_recipients_per_message" int null,
  "allowed_recipient_domains" text[] not null default '{}',
  "blocked_recipient_domains" text[] not null default '{}',
  "daily_send_cap_per_inbox" int null,
  "require_send_approval" text not null default 'off',
  "after_alarm" text not null default 'approval',
  "auto_submitted_header" boolean not null default true,
  "support_access" text not null default 'allowed',
  "support_access_until" timestamptz(3) null,
  "updated_at" timestamptz(3) not null default now(),
  primary key ("org_id")
);
alter table "organization_policies" add constraint "organization_policies_require_send_approval" check (require_send_approval = ANY (ARRAY['off'::text, 'all'::text, 'external'::text]));
alter table "organization_policies" add constraint "organization_policies_after_alarm" check (after_alarm = ANY (ARRAY['approval'::text, 'none'::text]));
alter table "organization_policies" add constraint "organization_policies_support_access" check (support_access = ANY (ARRAY['allowed'::text, 'ask'::text]));

create table "outbox" (
  "id" bigserial primary key,
  "org_id" text collate "C" not null,
  "command" jsonb not null,
  "task_queue" text null,
  "priority" smallint not null,
  "available_at" timestamptz(3) not null,
  "attempts" int not null default 0,
  "last_error" text null,
  "dead_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now()
);
create index "outbox_due_index" on "outbox" ("available_at") where "dead_at" is null;
create index "outbox_turn_index" on "outbox" ("org_id", "priority", "available_at") where "dead_at" is null;
create index "outbox_dead_index" on "outbox" ("dead_at") where "dead_at" is not null;

create table "payment_graces" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "subscription_id" text collate "C" not null,
  "generation" int not null,
  "status" text not null default 'waiting',
  "started_at" timestamptz(3) not null,
  "suspend_at" timestamptz(3) not null,
  "next_step_at" timestamptz(3) null,
  "reminders_sent" int not null default 0,
  "suspended_at" timestamptz(3) null,
  "closed_at" timestamptz(3) null,
  "reconciled_at" timestamptz(3) null,
  primary key ("id")
);
create index "payment_graces_org_id_id_index" on "payment_graces" ("org_id", "id");
create unique index "payment_graces_open_unique" on "payment_graces" ("subscription_id") where "closed_at" is null;
create index "payment_graces_next_step_index" on "payment_graces" ("next_step_at") where "closed_at" is null;
alter table "payment_graces" add constraint "payment_graces_status" check (status = ANY (ARRAY['waiting'::text, 'suspended'::text, 'recovered'::text, 'ended'::text]));

create table "processes" (
  "id" text not null,
  "name" text not null,
  "version" text not null,
  "host" text not null,
  "started_at" timestamptz(3) not null,
  "last_seen_at" timestamptz(3) not null,
  primary key ("id")
);

create table "rate_buckets" (
  "id" text not null,
  "tokens" double precision not null,
  "refilled_at" timestamptz(3) not null,
  primary key ("id")
);

create table "inbound_receipts" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" not null,
  "inbox_id" text collate "C" not null,
  "kind" text not null,
  "message_id" text collate "C" not null,
  "recipient_position" smallint null,
  "raw_key" text not null,
  "size_bytes" int not null,
  "sha256" bytea not null,
  "transport_id" text null,
  "fingerprint" bytea null,
  "duplicate_of" text collate "C" null,
  "mail_from" text not null,
  "rcpt_to" text not null,
  "client_ip" text not null,
  "helo" text null,
  "verdicts" jsonb null,
  "tls" boolean not null default false,
  "status" text not null default 'received',
  "discard_reason" text null,
  "reconciled_at" timestamptz(3) null,
  "received_at" timestamptz(3) not null,
  "processed_at" timestamptz(3) null,
  primary key ("id")
);
create index "inbound_receipts_raw_key_index" on "inbound_receipts" ("raw_key");
create index "inbound_receipts_unprocessed_index" on "inbound_receipts" ("received_at") where "status" = 'received';
create index "inbound_receipts_expired_index" on "inbound_receipts" ("processed_at") where "kind" = 'report' or "duplicate_of" is not null or "status" = 'discarded';
create index "inbound_receipts_reported_index" on "inbound_receipts" ("message_id") where "kind" = 'report';
create index "inbound_receipts_duplicate_index" on "inbound_receipts" ("duplicate_of") where "duplicate_of" is not null;
create unique index "inbound_receipts_fingerprint_unique" on "inbound_receipts" ("inbox_id", "fingerprint") where "fingerprint" is not null;
create unique index "inbound_receipts_transport_unique" on "inbound_receipts" ("inbox_id", "transport_id") where "transport_id" is not null;

create table "refusals" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" null,
  "inbox_id" text collate "C" null,
  "direction" text not null,
  "stage" text not null,
  "reason" text not null,
  "response_code" smallint not null,
  "response" text not null,
  "sender" text null,
  "recipient" text null,
  "client_ip" text null,
  "count" int not null,
  "hour" timestamptz(3) not null,
  "fingerprint" bytea not null,
  "first_at" timestamptz(3) not null,
  "last_at" timestamptz(3) not null,
  primary key ("id")
);
create index "refusals_org_id_id_index" on "refusals" ("org_id", "id");
create index "refusals_inbox_id_id_index" on "refusals" ("inbox_id", "id");
create index "refusals_hour_index" on "refusals" ("hour");
alter table "refusals" add constraint "refusals_org_id_hour_fingerprint_unique" unique ("org_id", "hour", "fingerprint");

create table "released_slugs" (
  "slug" text not null,
  "org_id" text collate "C" not null,
  "released_at" timestamptz(3) not null,
  primary key ("slug")
);
create index "released_slugs_org_id_index" on "released_slugs" ("org_id");
create index "released_slugs_released_at_index" on "released_slugs" ("released_at");

create table "reputation_outcomes" (
  "inbox_id" text collate "C" not null,
  "kind" text not null,
  "message_id" text collate "C" not null,
  "position" smallint not null,
  "org_id" text collate "C" not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("inbox_id", "kind", "message_id", "position")
);
create index "reputation_outcomes_created_at_index" on "reputation_outcomes" ("created_at");

create table "restores" (
  "id" bigserial primary key,
  "restored_to" timestamptz(3) null,
  "storage" text null,
  "marked_at" timestamptz(3) not null,
  "reconciled_at" timestamptz(3) null,
  "counts" jsonb null
);
create index "restores_pending_index" on "restores" ("id") where "reconciled_at" is null;
alter table "restores" add constraint "restores_storage" check (storage = ANY (ARRAY['comparing'::text, 'copying'::text, 'complete'::text, 'restored'::text, 'untouched'::text]));

create table "retention_policies" (
  "org_id" text collate "C" not null,
  "retention_days" int not null default 0,
  "applied_days" int not null default 0,
  "applied_since" timestamptz(3) null,
  "steps" jsonb not null,
  "postponed_until" timestamptz(3) null,
  "resume_warned_at" timestamptz(3) null,
  "reminded_at" timestamptz(3) null,
  "version" int not null default 0,
  "changed_at" timestamptz(3) not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("org_id")
);

create table "shared_domain_caps" (
  "org_id" text collate "C" not null,
  "day" date not null,
  "recipients" int not null,
  "cap" int not null,
  primary key ("org_id")
);

create table "sign_in_attempts" (
  "key_hash" bytea not null,
  "failures" int not null,
  "last_attempt_at" timestamptz(3) not null,
  "blocked_until" timestamptz(3) not null,
  primary key ("key_hash")
);
create index "sign_in_attempts_last_attempt_at_index" on "sign_in_attempts" ("last_attempt_at");

create table "sign_ups" (
  "id" text collate "C" not null,
  "email" text not null,
  "name" text not null,
  "organization_name" text not null,
  "password_hash" text not null,
  "link_token_hash" bytea not null,
  "browser_token_hash" bytea not null,
  "expires_at" timestamptz(3) not null,
  "used_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
alter table "sign_ups" add constraint "sign_ups_link_token_hash_unique" unique ("link_token_hash");
create index "sign_ups_email_index" on "sign_ups" ("email");
create index "sign_ups_expires_at_index" on "sign_ups" ("expires_at");

create table "sso_configurations" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "type" text not null,
  "status" text not null default 'draft',
  "name" text not null,
  "version" int not null default 1,
  "replaces_id" text collate "C" null,
  "service_provider_id" text collate "C" null,
  "provider_id" text collate "C" null,
  "replaced_at" timestamptz(3) null,
  "domains" text[] not null,
  "default_role" text not null,
  "issuer" text null,
  "client_id" text null,
  "client_secret" bytea null,
  "idp_metadata_url" text null,
  "idp_metadata_xml" text null,
  "allow_idp_initiated" boolean not null default false,
  "keys_read_at" timestamptz(3) null,
  "metadata_fetched_at" timestamptz(3) null,
  "metadata_due_at" timestamptz(3) null,
  "certificate_expires_at" timestamptz(3) null,
  "certificate_warned_days" smallint null,
  "tested_at" timestamptz(3) null,
  "activated_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  "updated_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "sso_configurations_org_id_id_index" on "sso_configurations" ("org_id", "id");
create unique index "sso_configurations_active_unique" on "sso_configurations" ("org_id") where "status" = 'active';
create unique index "sso_configurations_replaces_unique" on "sso_configurations" ("replaces_id");
alter table "sso_configurations" add constraint "sso_configurations_type" check (type = ANY (ARRAY['oidc'::text, 'saml'::text]));
alter table "sso_configurations" add constraint "sso_configurations_status" check (status = ANY (ARRAY['draft'::text, 'tested'::text, 'active'::text, 'disabled'::text]));
alter table "sso_configurations" add constraint "sso_configurations_default_role" check (default_role = ANY (ARRAY['admin'::text, 'developer'::text, 'viewer'::text]));

create table "sso_attempts" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "configuration_id" text collate "C" not null,
  "purpose" text not null,
  "succeeded" boolean not null,
  "checks" jsonb not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "sso_attempts_configuration_id_id_index" on "sso_attempts" ("configuration_id", "id");
create index "sso_attempts_created_at_index" on "sso_attempts" ("created_at");

create table "sso_assertions" (
  "configuration_id" text collate "C" not null,
  "assertion_hash" bytea not null,
  "org_id" text collate "C" not null,
  "expires_at" timestamptz(3) not null,
  primary key ("configuration_id", "assertion_hash")
);
create index "sso_assertions_expires_at_index" on "sso_assertions" ("expires_at");

create table "sso_providers" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "type" text not null,
  "issuer" text not null,
  "certificates" text[] not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "sso_providers_org_id_issuer_index" on "sso_providers" ("org_id", "issuer");
alter table "sso_providers" add constraint "sso_providers_type" check (type = ANY (ARRAY['oidc'::text, 'saml'::text]));

create table "sso_setup_links" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "email" text null,
  "token_hash" bytea not null,
  "created_by_user_id" text collate "C" null,
  "created_by_key_id" text collate "C" null,
  "configuration_id" text collate "C" null,
  "session_hash" bytea null,
  "expires_at" timestamptz(3) not null,
  "used_at" timestamptz(3) null,
  "revoked_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
alter table "sso_setup_links" add constraint "sso_setup_links_token_hash_unique" unique ("token_hash");
alter table "sso_setup_links" add constraint "sso_setup_links_session_hash_unique" unique ("session_hash");
create index "sso_setup_links_org_id_id_index" on "sso_setup_links" ("org_id", "id");
create index "sso_setup_links_configuration_id_index" on "sso_setup_links" ("configuration_id");
create index "sso_setup_links_expires_at_index" on "sso_setup_links" ("expires_at");

create table "sso_transactions" (
  "token_hash" bytea not null,
  "org_id" text collate "C" not null,
  "configuration_id" text collate "C" not null,
  "configuration_version" int not null,
  "purpose" text not null,
  "browser_hash" bytea not null,
  "secrets" bytea null,
  "redirect_to" text not null,
  "is_fresh" boolean not null default false,
  "user_id" text collate "C" null,
  "claims" jsonb null,
  "expires_at" timestamptz(3) not null,
  "used_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("token_hash")
);
create index "sso_transactions_expires_at_index" on "sso_transactions" ("expires_at");
create index "sso_transactions_configuration_id_index" on "sso_transactions" ("configuration_id");
alter table "sso_transactions" add constraint "sso_transactions_purpose" check (purpose = ANY (ARRAY['login'::text, 'test'::text, 'link'::text, 'confirm'::text, 'prove'::text]));

create table "staff_audit_entries" (
  "id" text collate "C" not null,
  "staff_id" text collate "C" not null,
  "session_id" text collate "C" not null,
  "action" text not null,
  "resource_type" text not null,
  "resource_id" text not null,
  "organization_id" text collate "C" null,
  "reason" text null,
  "details" jsonb not null,
  "ip" text not null,
  "request_id" text not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "staff_audit_entries_organization_id_id_index" on "staff_audit_entries" ("organization_id", "id");
create index "staff_audit_entries_staff_id_id_index" on "staff_audit_entries" ("staff_id", "id");
create index "staff_audit_entries_resource_id_id_index" on "staff_audit_entries" ("resource_id", "id");
create index "staff_audit_entries_action_id_index" on "staff_audit_entries" ("action", "id");

create table "staff_jobs" (
  "id" text collate "C" not null,
  "staff_id" text collate "C" not null,
  "session_id" text collate "C" not null,
  "ip" text not null,
  "request_id" text not null,
  "action" text not null,
  "note" text not null,
  "resolution" text null,
  "filter" jsonb null,
  "items" jsonb null,
  "status" text not null default 'running',
  "detail" text null,
  "position" text null,
  "matched" int not null default 0,
  "accepted" int not null default 0,
  "refused" int not null default 0,
  "problems" jsonb not null,
  "reconciled_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  "completed_at" timestamptz(3) null,
  primary key ("id")
);
create index "staff_jobs_running_index" on "staff_jobs" ("created_at") where "status" = 'running';

create table "stripe_events" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "type" text not null,
  "subscription_id" text collate "C" null,
  "created_at" timestamptz(3) not null,
  "received_at" timestamptz(3) not null,
  primary key ("id")
);
create index "stripe_events_org_id_id_index" on "stripe_events" ("org_id", "id");
create index "stripe_events_received_at_index" on "stripe_events" ("received_at");

create table "suppressions" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "email" text not null,
  "scope_id" text collate "C" not null,
  "origin" text not null,
  "env_id" text collate "C" null,
  "inbox_id" text collate "C" null,
  "message_id" text collate "C" null,
  "status" text null,
  "diagnostic" text null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "suppressions_org_id_id_index" on "suppressions" ("org_id", "id");
alter table "suppressions" add constraint "suppressions_org_id_email_scope_id_unique" unique ("org_id", "email", "scope_id");

create table "suspensions" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "target_type" text not null,
  "target_id" text collate "C" not null,
  "reason" text not null,
  "note" text not null,
  "actor_kind" text not null,
  "actor_id" text collate "C" not null,
  "created_at" timestamptz(3) not null default now(),
  "lifted_at" timestamptz(3) null,
  "lifted_note" text null,
  "lifted_by_kind" text null,
  "lifted_by_id" text collate "C" null,
  "changed_at" timestamptz(3) not null,
  "settled_at" timestamptz(3) null,
  "reconciled_at" timestamptz(3) null,
  primary key ("id")
);
create index "suspensions_org_id_id_index" on "suspensions" ("org_id", "id");
create unique index "suspensions_open_unique" on "suspensions" ("target_id", "reason") where "lifted_at" is null;
create index "suspensions_unsettled_index" on "suspensions" ("changed_at") where "settled_at" is null;
alter table "suspensions" add constraint "suspensions_reason" check (reason = ANY (ARRAY['payment'::text, 'abuse'::text, 'support'::text, 'policy'::text]));
alter table "suspensions" add constraint "suspensions_target_type" check (target_type = ANY (ARRAY['organization'::text, 'environment'::text, 'inbox'::text]));

create table "sweeps" (
  "name" text not null,
  "finished_at" timestamptz(3) not null,
  primary key ("name")
);

create table "threads" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" not null,
  "inbox_id" text collate "C" not null,
  "subject" text not null,
  "base_subject" text not null,
  "preview" text not null default '',
  "labels" text[] not null default '{}',
  "participants" text[] not null default '{}',
  "message_count" int not null default 0,
  "last_message_id" text collate "C" null,
  "last_message_at" timestamptz(3) not null,
  "last_inbound_at" timestamptz(3) null,
  "last_outbound_at" timestamptz(3) null,
  "has_attachments" boolean not null default false,
  "send_paused_until" timestamptz(3) null,
  "has_root" boolean not null default false,
  "merged_into_id" text collate "C" null,
  "has_unmoved_messages" boolean not null default false,
  "reconciled_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  "updated_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "threads_inbox_id_last_message_at_id_index" on "threads" ("inbox_id", "last_message_at", "id");
create index "threads_env_id_last_message_at_id_index" on "threads" ("env_id", "last_message_at", "id");
create index "threads_inbox_id_base_subject_last_message_at_index" on "threads" ("inbox_id", "base_subject", "last_message_at");
create index "threads_merged_index" on "threads" ("merged_into_id") where "merged_into_id" is not null;
create index "threads_unmoved_index" on "threads" ("updated_at") where "has_unmoved_messages";

create table "messages" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" not null,
  "inbox_id" text collate "C" not null,
  "thread_id" text collate "C" not null,
  "direction" text not null,
  "status" text not null,
  "status_detail" text null,
  "from_email" text not null,
  "from_name" text null,
  "to" jsonb not null,
  "cc" jsonb not null,
  "bcc" jsonb not null,
  "reply_to" jsonb not null,
  "delivered_to" text null,
  "subject" text not null,
  "preview" text not null default '',
  "text_body" text null,
  "html_body" text null,
  "extracted_text" text null,
  "hidden_text" text null,
  "labels" text[] not null default '{}',
  "has_attachments" boolean not null default false,
  "rfc_message_id" text null,
  "in_reply_to" text null,
  "reference_ids" text[] not null default '{}',
  "draft_id" text collate "C" null,
  "auto_submitted" text null,
  "provider_message_id" text null,
  "size_bytes" int not null default 0,
  "headers" jsonb not null,
  "authentication" jsonb null,
  "spam" jsonb null,
  "automated" boolean not null default false,
  "signals" text[] not null default '{}',
  "codes" jsonb not null default '[]',
  "links" jsonb not null default '[]',
  "all_links" jsonb not null default '[]',
  "has_more_links" boolean not null default false,
  "invites" jsonb not null default '[]',
  "injection" jsonb not null default '{"level": "none", "reasons": []}',
  "injection_dismissed_at" timestamptz(3) null,
  "injection_dismissed_by" text collate "C" null,
  "findings_version" smallint not null default 0,
  "announced" boolean not null default true,
  "parse_error" text null,
  "raw_key" text null,
  "submitted_key" text null,
  "tracked" boolean not null default false,
  "reconciled_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  "updated_at" timestamptz(3) not null default now(),
  "queued_at" timestamptz(3) null,
  "sent_at" timestamptz(3) null,
  "delivered_at" timestamptz(3) null,
  "bounced_at" timestamptz(3) null,
  "complained_at" timestamptz(3) null,
  "received_at" timestamptz(3) null,
  primary key ("id")
);
create index "messages_inbox_id_id_index" on "messages" ("inbox_id", "id");
create index "messages_env_id_id_index" on "messages" ("env_id", "id");
create index "messages_thread_id_id_index" on "messages" ("thread_id", "id");
create index "messages_inbox_id_rfc_message_id_index" on "messages" ("inbox_id", "rfc_message_id");
create index "messages_outbound_index" on "messages" ("inbox_id", "id") where "direction" = 'outbound';
create index "messages_draft_index" on "messages" ("draft_id") where "draft_id" is not null;
create index "messages_unparsed_index" on "messages" ("id") where "parse_error" is not null;
create index "messages_attention_index" on "messages" ("env_id", "id") where "status" = 'needs_attention';
create index "messages_unsettled_index" on "messages" ("updated_at") where "status" in ('queued', 'sending', 'deferred', 'needs_attention');

create table "send_attempts" (
  "message_id" text collate "C" not null,
  "position" smallint not null,
  "number" smallint not null,
  "org_id" text collate "C" not null,
  "state" text not null,
  "refused_scope" text null,
  "status_code" text null,
  "response" text null,
  "provider_message_id" text null,
  "reports_delivery" boolean not null default false,
  "simulated" jsonb null,
  "recorded" boolean not null default false,
  "canceled" boolean not null default false,
  "started_at" timestamptz(3) not null,
  "finished_at" timestamptz(3) null,
  primary key ("message_id", "position", "number")
);
create index "send_attempts_provider_message_id_index" on "send_attempts" ("provider_message_id") where "provider_message_id" is not null;

create table "message_recipients" (
  "message_id" text collate "C" not null,
  "position" smallint not null,
  "org_id" text collate "C" not null,
  "field" text not null,
  "email" text not null,
  "status" text not null default 'pending',
  "status_code" text null,
  "diagnostic_code" text null,
  "sent_at" timestamptz(3) null,
  "updated_at" timestamptz(3) not null default now(),
  primary key ("message_id", "position")
);

create table "message_search" (
  "inbox_id" text collate "C" not null,
  "message_id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" not null,
  "document" tsvector not null,
  primary key ("inbox_id", "message_id")
);
create index "message_search_env_id_message_id_index" on "message_search" ("env_id", "message_id");
create index "message_search_message_index" on "message_search" using hash ("message_id");
create index "message_search_document_index" on "message_search" using gin ("document") with (gin_pending_list_limit = 512);

create table "attachments" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" not null,
  "inbox_id" text collate "C" not null,
  "message_id" text collate "C" null,
  "draft_id" text collate "C" null,
  "position" smallint not null,
  "filename" text not null,
  "content_type" text not null,
  "size_bytes" int not null,
  "sha256" bytea not null,
  "storage_key" text not null,
  "content_id" text null,
  "text_key" text null,
  "disposition" text not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "attachments_inbox_id_index" on "attachments" ("inbox_id");
create index "attachments_message_id_position_index" on "attachments" ("message_id", "position");
create index "attachments_draft_id_position_index" on "attachments" ("draft_id", "position");
create index "attachments_storage_key_index" on "attachments" ("storage_key");
create index "attachments_text_index" on "attachments" ("text_key") where "text_key" is not null;
create index "attachments_unused_index" on "attachments" ("created_at") where "message_id" is null and "draft_id" is null;
alter table "attachments" add constraint "attachments_one_owner" check (message_id is null or draft_id is null);

create table "thread_message_ids" (
  "inbox_id" text collate "C" not null,
  "id_hash" text collate "C" not null,
  "org_id" text collate "C" not null,
  "thread_id" text collate "C" not null,
  "source" text not null,
  primary key ("inbox_id", "id_hash")
);
create index "thread_message_ids_thread_id_index" on "thread_message_ids" ("thread_id");
alter table "thread_message_ids" add constraint "thread_message_ids_source" check (source = ANY (ARRAY['held'::text, 'named'::text, 'unverified'::text]));

create table "toggles" (
  "name" text not null,
  "enabled" boolean not null,
  "note" text not null,
  "changed_by" text collate "C" not null,
  "changed_at" timestamptz(3) not null,
  primary key ("name")
);

create table "unattributed_reports" (
  "id" text collate "C" not null,
  "raw_key" text not null,
  "size_bytes" int not null,
  "mail_from" text not null,
  "client_ip" text not null,
  "helo" text null,
  "received_at" timestamptz(3) not null,
  primary key ("id")
);
create index "unattributed_reports_raw_key_index" on "unattributed_reports" ("raw_key");
create index "unattributed_reports_received_at_index" on "unattributed_reports" ("received_at");

create table "unclaimed_objects" (
  "storage_key" text not null,
  "org_id" text collate "C" null,
  "due_at" timestamptz(3) not null,
  "deleting" boolean not null default false,
  primary key ("storage_key")
);
create index "unclaimed_objects_due_at_index" on "unclaimed_objects" ("due_at");
create index "unclaimed_objects_org_id_due_at_index" on "unclaimed_objects" ("org_id", "due_at");

create table "upgrade_requests" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "tier" text not null,
  "current_tier" text not null,
  "note" text not null,
  "status" text not null default 'open',
  "requested_by_kind" text not null,
  "requested_by_id" text collate "C" not null,
  "created_at" timestamptz(3) not null default now(),
  "decided_by" text collate "C" null,
  "decided_at" timestamptz(3) null,
  "decision_note" text null,
  primary key ("id")
);
create index "upgrade_requests_org_id_id_index" on "upgrade_requests" ("org_id", "id");
create index "upgrade_requests_status_id_index" on "upgrade_requests" ("status", "id");
create unique index "upgrade_requests_open_unique" on "upgrade_requests" ("org_id") where "status" = 'open';
alter table "upgrade_requests" add constraint "upgrade_requests_tier" check (tier = ANY (ARRAY['free'::text, 'developer'::text, 'business'::text, 'enterprise'::text]));
alter table "upgrade_requests" add constraint "upgrade_requests_status" check (status = ANY (ARRAY['open'::text, 'approved'::text, 'rejected'::text]));

create table "usage_alerts" (
  "org_id" text collate "C" not null,
  "counter" text not null,
  "threshold" smallint not null,
  "period_start" timestamptz(3) not null,
  "created_at" timestamptz(3) not null,
  primary key ("org_id", "counter", "threshold", "period_start")
);
create index "usage_alerts_period_start_index" on "usage_alerts" ("period_start");

create table "usage_counters" (
  "org_id" text collate "C" not null,
  "counter" text not null,
  "period_start" timestamptz(3) not null,
  "amount" bigint not null,
  primary key ("org_id", "counter", "period_start")
);

create table "usage_deltas" (
  "id" bigserial primary key,
  "org_id" text collate "C" not null,
  "counter" text not null,
  "at" timestamptz(3) not null,
  "amount" bigint not null
);
create index "usage_deltas_org_id_counter_index" on "usage_deltas" ("org_id", "counter");

create table "usage_events" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "kind" text not null,
  "counter" text null,
  "data" jsonb not null,
  "actor" text not null,
  "at" timestamptz(3) not null,
  primary key ("id")
);
create index "usage_events_org_id_at_id_index" on "usage_events" ("org_id", "at", "id");
create index "usage_events_at_index" on "usage_events" ("at");
create unique index "usage_events_period_unique" on "usage_events" ("org_id", ("data" ->> 'period_start')) where "kind" = 'period_closed';

create table "usage_hours" (
  "org_id" text collate "C" not null,
  "counter" text not null,
  "hour" timestamptz(3) not null,
  "amount" bigint not null,
  primary key ("org_id", "counter", "hour")
);
create index "usage_hours_org_id_hour_index" on "usage_hours" ("org_id", "hour");
create index "usage_hours_hour_index" on "usage_hours" ("hour");

create table "users" (
  "id" text collate "C" not null,
  "email" text not null,
  "name" text null,
  "password_hash" text null,
  "email_verified_at" timestamptz(3) null,
  "avatar_url" text null,
  "webauthn_handle" bytea not null default uuid_send(gen_random_uuid()),
  "status" text not null default 'active',
  "deleted_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  "updated_at" timestamptz(3) not null default now(),
  primary key ("id")
);
alter table "users" add constraint "users_email_unique" unique ("email");
alter table "users" add constraint "users_webauthn_handle_unique" unique ("webauthn_handle");
alter table "users" add constraint "users_status" check (status = ANY (ARRAY['active'::text, 'suspended'::text]));

create table "staff_members" (
  "user_id" text collate "C" not null,
  "role" text not null,
  "created_by" text collate "C" null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("user_id")
);
alter table "staff_members" add constraint "staff_members_role" check (role = ANY (ARRAY['support'::text, 'admin'::text]));

create table "sso_identities" (
  "provider_id" text collate "C" not null,
  "subject" text not null,
  "org_id" text collate "C" not null,
  "user_id" text collate "C" not null,
  "email" text not null,
  "last_login_at" timestamptz(3) not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("provider_id", "subject")
);
create index "sso_identities_user_id_index" on "sso_identities" ("user_id");

create table "sessions" (
  "id" text collate "C" not null,
  "user_id" text collate "C" not null,
  "token_hash" bytea not null,
  "kind" text not null,
  "method" text not null,
  "factors" text[] not null,
  "sso_configuration_id" text collate "C" null,
  "authenticated_at" timestamptz(3) not null,
  "ip" text not null,
  "user_agent" text null,
  "last_seen_at" timestamptz(3) not null,
  "expires_at" timestamptz(3) not null,
  "revoked_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
alter table "sessions" add constraint "sessions_token_hash_unique" unique ("token_hash");
create index "sessions_user_id_id_index" on "sessions" ("user_id", "id");
create index "sessions_expires_at_index" on "sessions" ("expires_at");
alter table "sessions" add constraint "sessions_kind" check (kind = ANY (ARRAY['full'::text, 'enroll'::text]));

create table "oauth_transactions" (
  "state_hash" bytea not null,
  "provider" text not null,
  "browser_token_hash" bytea not null,
  "session_id" text collate "C" null,
  "redirect_to" text not null,
  "expires_at" timestamptz(3) not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("state_hash")
);
create index "oauth_transactions_session_id_index" on "oauth_transactions" ("session_id");
create index "oauth_transactions_expires_at_index" on "oauth_transactions" ("expires_at");

create table "mfa_recovery_codes" (
  "user_id" text collate "C" not null,
  "code_hash" bytea not null,
  "used_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("user_id", "code_hash")
);

create table "oauth_identities" (
  "provider" text not null,
  "issuer" text not null,
  "subject" text not null,
  "user_id" text collate "C" not null,
  "email" text null,
  "last_used_at" timestamptz(3) not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("provider", "issuer", "subject")
);
alter table "oauth_identities" add constraint "oauth_identities_user_id_provider_unique" unique ("user_id", "provider");

create table "mfa_enrollments" (
  "id" text collate "C" not null,
  "user_id" text collate "C" not null,
  "type" text not null,
  "name" text not null,
  "secret" bytea null,
  "last_step" int null,
  "credential_id" bytea null,
  "public_key" bytea null,
  "signature_counter" bigint null,
  "transports" text[] not null default '{}',
  "rp_id" text null,
  "confirmed_at" timestamptz(3) null,
  "last_used_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
alter table "mfa_enrollments" add constraint "mfa_enrollments_credential_id_unique" unique ("credential_id");
create index "mfa_enrollments_user_id_id_index" on "mfa_enrollments" ("user_id", "id");
alter table "mfa_enrollments" add constraint "mfa_enrollments_type" check (type = ANY (ARRAY['totp'::text, 'webauthn'::text]));

create table "mfa_challenges" (
  "token_hash" bytea not null,
  "user_id" text collate "C" not null,
  "method" text not null,
  "sso_configuration_id" text collate "C" null,
  "failures" smallint not null default 0,
  "browser_token_hash" bytea null,
  "expires_at" timestamptz(3) not null,
  "used_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("token_hash")
);
create index "mfa_challenges_user_id_index" on "mfa_challenges" ("user_id");
create index "mfa_challenges_expires_at_index" on "mfa_challenges" ("expires_at");

create table "members" (
  "org_id" text collate "C" not null,
  "user_id" text collate "C" not null,
  "role" text not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("org_id", "user_id")
);
create index "members_user_id_index" on "members" ("user_id");
alter table "members" add constraint "members_role" check (role = ANY (ARRAY['owner'::text, 'admin'::text, 'developer'::text, 'viewer'::text]));

create table "known_devices" (
  "token_hash" bytea not null,
  "user_id" text collate "C" not null,
  "failures" int not null,
  "created_at" timestamptz(3) not null default now(),
  "last_used_at" timestamptz(3) null,
  "expires_at" timestamptz(3) not null,
  primary key ("token_hash")
);
create index "known_devices_user_id_index" on "known_devices" ("user_id");
create index "known_devices_expires_at_index" on "known_devices" ("expires_at");

create table "connections" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" null,
  "inbox_id" text collate "C" null,
  "user_id" text collate "C" not null,
  "request_hash" bytea null,
  "client_id" text not null,
  "client_name" text not null,
  "redirect_to" text not null,
  "permissions" text[] not null,
  "method" text not null,
  "factors" text[] not null,
  "sso_configuration_id" text collate "C" null,
  "authenticated_at" timestamptz(3) not null,
  "expires_at" timestamptz(3) not null,
  "last_used_at" timestamptz(3) null,
  "ended_at" timestamptz(3) null,
  "end_reason" text null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("id")
);
create index "connections_org_id_id_index" on "connections" ("org_id", "id");
create index "connections_user_id_id_index" on "connections" ("user_id", "id");
create index "connections_ended_at_index" on "connections" ("ended_at");
create index "connections_client_id_index" on "connections" ("client_id");
alter table "connections" add constraint "connections_request_hash_unique" unique ("request_hash");
alter table "connections" add constraint "connections_end_reason" check (end_reason = ANY (ARRAY['person'::text, 'client'::text, 'reuse'::text, 'membership'::text, 'sign_out'::text, 'unused'::text]));

create table "connection_tokens" (
  "token_hash" bytea not null,
  "kind" text not null,
  "connection_id" text collate "C" null,
  "network_hash" bytea null,
  "payload" jsonb not null,
  "consumed_at" timestamptz(3) null,
  "expires_at" timestamptz(3) not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("token_hash")
);
create index "connection_tokens_connection_id_index" on "connection_tokens" ("connection_id");
create index "connection_tokens_expires_at_index" on "connection_tokens" ("expires_at");
create index "connection_tokens_network_index" on "connection_tokens" ("network_hash") where "network_hash" is not null;
alter table "connection_tokens" add constraint "connection_tokens_kind" check (kind = ANY (ARRAY['interaction'::text, 'authorization_code'::text, 'access_token'::text, 'refresh_token'::text]));

create table "account_tokens" (
  "token_hash" bytea not null,
  "purpose" text not null,
  "user_id" text collate "C" not null,
  "new_email" text null,
  "expires_at" timestamptz(3) not null,
  "used_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("token_hash")
);
create index "account_tokens_user_id_index" on "account_tokens" ("user_id");
create index "account_tokens_expires_at_index" on "account_tokens" ("expires_at");
alter table "account_tokens" add constraint "account_tokens_purpose" check (purpose = ANY (ARRAY['reset_password'::text, 'change_email'::text, 'recover'::text]));

create table "webauthn_challenges" (
  "challenge_hash" bytea not null,
  "purpose" text not null,
  "user_id" text collate "C" null,
  "mfa_token_hash" bytea null,
  "expires_at" timestamptz(3) not null,
  "created_at" timestamptz(3) not null default now(),
  primary key ("challenge_hash")
);
create index "webauthn_challenges_user_id_index" on "webauthn_challenges" ("user_id");
create index "webauthn_challenges_expires_at_index" on "webauthn_challenges" ("expires_at");
alter table "webauthn_challenges" add constraint "webauthn_challenges_purpose" check (purpose = ANY (ARRAY['enroll'::text, 'second_factor'::text, 'sign_in'::text]));

create table "webhook_endpoints" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" not null,
  "url" text not null,
  "events" text[] not null,
  "description" text null,
  "inbox_ids" text[] null,
  "secret" bytea not null,
  "previous_secret" bytea null,
  "previous_secret_expires_at" timestamptz(3) null,
  "disabled" boolean not null default false,
  "disabled_reason" text null,
  "failing_since" timestamptz(3) null,
  "consecutive_failures" int not null default 0,
  "holding_since" timestamptz(3) null,
  "probe_generation" int not null default 0,
  "reconciled_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  "updated_at" timestamptz(3) not null default now(),
  "deleted_at" timestamptz(3) null,
  primary key ("id")
);
create index "webhook_endpoints_env_id_id_index" on "webhook_endpoints" ("env_id", "id");
create index "webhook_endpoints_disabled_index" on "webhook_endpoints" ("id") where "disabled" and "deleted_at" is null;
create index "webhook_endpoints_holding_index" on "webhook_endpoints" ("holding_since") where "holding_since" is not null;

create table "webhook_deliveries" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "endpoint_id" text collate "C" not null,
  "event_id" text collate "C" not null,
  "status" text not null,
  "held_for" text null,
  "attempts" int not null default 0,
  "prior_attempts" int not null default 0,
  "generation" int not null default 1,
  "next_attempt_at" timestamptz(3) null,
  "last_status_code" int null,
  "last_error" text null,
  "reconciled_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  "completed_at" timestamptz(3) null,
  primary key ("id")
);
create index "webhook_deliveries_endpoint_id_id_index" on "webhook_deliveries" ("endpoint_id", "id");
create index "webhook_deliveries_endpoint_id_status_id_index" on "webhook_deliveries" ("endpoint_id", "status", "id");
create index "webhook_deliveries_event_id_endpoint_id_index" on "webhook_deliveries" ("event_id", "endpoint_id");
create index "webhook_deliveries_pending_index" on "webhook_deliveries" ("next_attempt_at") where "status" = 'pending';
create index "webhook_deliveries_over_limit_index" on "webhook_deliveries" ("org_id", "id") where "status" = 'held' and "held_for" = 'usage_limit';
create index "webhook_deliveries_suspended_index" on "webhook_deliveries" ("org_id", "id") where "status" = 'held' and "held_for" = 'suspension';
create index "webhook_deliveries_held_index" on "webhook_deliveries" ("held_for", "created_at") where "status" = 'held';
create index "webhook_deliveries_backlog_index" on "webhook_deliveries" ("endpoint_id", "id") where "status" = 'held' and ("held_for" is null or "held_for" = 'endpoint_failing');
create index "webhook_deliveries_requested_index" on "webhook_deliveries" ("endpoint_id", "next_attempt_at") where "status" = 'held' and "next_attempt_at" is not null;

create table "webhook_delivery_attempts" (
  "delivery_id" text collate "C" not null,
  "number" int not null,
  "org_id" text collate "C" not null,
  "started_at" timestamptz(3) not null,
  "finished_at" timestamptz(3) null,
  "duration_ms" int null,
  "status_code" int null,
  "response_body" text null,
  "response_headers" jsonb null,
  "error" text null,
  "redacted" boolean not null default false,
  primary key ("delivery_id", "number")
);

create table "webhook_bulk_jobs" (
  "id" text collate "C" not null,
  "org_id" text collate "C" not null,
  "env_id" text collate "C" not null,
  "endpoint_id" text collate "C" not null,
  "kind" text not null,
  "requested_by_kind" text null,
  "requested_by_id" text collate "C" null,
  "status" text not null default 'running',
  "detail" text null,
  "since" timestamptz(3) null,
  "until" timestamptz(3) not null,
  "event_types" text[] null,
  "only_failed" boolean not null default false,
  "position" text collate "C" null,
  "deliveries" int not null default 0,
  "expedited" int not null default 0,
  "skipped" jsonb not null default '{}',
  "reconciled_at" timestamptz(3) null,
  "created_at" timestamptz(3) not null default now(),
  "completed_at" timestamptz(3) null,
  primary key ("id")
);
create unique index "webhook_bulk_jobs_running_unique" on "webhook_bulk_jobs" ("endpoint_id") where "status" = 'running';

create table "webhook_slots" (
  "endpoint_id" text collate "C" not null,
  "slot" smallint not null,
  "org_id" text collate "C" not null,
  "leased_until" timestamptz(3) not null,
  "delivery_id" text collate "C" null,
  primary key ("endpoint_id", "slot")
);
alter table "notifications" add constraint "notifications_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "meter_reports" add constraint "meter_reports_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "limit_overrides" add constraint "limit_overrides_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "invitations" add constraint "invitations_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "impersonations" add constraint "impersonations_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "impersonated_operations" add constraint "impersonated_operations_impersonation_id_foreign" foreign key ("impersonation_id") references "impersonations" ("id") on delete cascade;
alter table "impersonated_operations" add constraint "impersonated_operations_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "exports" add constraint "exports_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "environments" add constraint "environments_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "metric_hours" add constraint "metric_hours_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
alter table "metric_hours" add constraint "metric_hours_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "events" add constraint "events_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "events" add constraint "events_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
alter table "domains" add constraint "domains_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "inboxes" add constraint "inboxes_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "inboxes" add constraint "inboxes_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
alter table "inboxes" add constraint "inboxes_domain_id_foreign" foreign key ("domain_id") references "domains" ("id") on delete set null;
alter table "list_entries" add constraint "list_entries_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "list_entries" add constraint "list_entries_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
alter table "list_entries" add constraint "list_entries_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade;
alter table "injection_alarms" add constraint "injection_alarms_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "injection_alarms" add constraint "injection_alarms_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
alter table "injection_alarms" add constraint "injection_alarms_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade;
alter table "inbox_daily_sends" add constraint "inbox_daily_sends_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on update cascade on delete cascade;
alter table "inbox_daily_sends" add constraint "inbox_daily_sends_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "inbox_credentials" add constraint "inbox_credentials_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on update cascade on delete cascade;
alter table "inbox_credentials" add constraint "inbox_credentials_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "drafts" add constraint "drafts_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "drafts" add constraint "drafts_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
alter table "drafts" add constraint "drafts_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade;
alter table "dkim_keys" add constraint "dkim_keys_domain_id_foreign" foreign key ("domain_id") references "domains" ("id") on delete cascade;
alter table "custom_limits" add constraint "custom_limits_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "billing_subscriptions" add constraint "billing_subscriptions_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "billing_meters" add constraint "billing_meters_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "billing_customers" add constraint "billing_customers_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on update cascade on delete cascade;
alter table "audit_entries" add constraint "audit_entries_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "approved_recipients" add constraint "approved_recipients_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "approved_recipients" add constraint "approved_recipients_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
alter table "approved_recipients" add constraint "approved_recipients_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade;
alter table "approval_digests" add constraint "approval_digests_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on update cascade on delete cascade;
alter table "api_keys" add constraint "api_keys_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "api_keys" add constraint "api_keys_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
alter table "api_keys" add constraint "api_keys_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade;
alter table "organization_policies" add constraint "organization_policies_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on update cascade on delete cascade;
alter table "payment_graces" add constraint "payment_graces_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "inbound_receipts" add constraint "inbound_receipts_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "refusals" add constraint "refusals_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "refusals" add constraint "refusals_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
alter table "reputation_outcomes" add constraint "reputation_outcomes_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "retention_policies" add constraint "retention_policies_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on update cascade on delete cascade;
alter table "shared_domain_caps" add constraint "shared_domain_caps_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on update cascade on delete cascade;
alter table "sso_configurations" add constraint "sso_configurations_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "sso_attempts" add constraint "sso_attempts_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "sso_attempts" add constraint "sso_attempts_configuration_id_foreign" foreign key ("configuration_id") references "sso_configurations" ("id") on delete cascade;
alter table "sso_assertions" add constraint "sso_assertions_configuration_id_foreign" foreign key ("configuration_id") references "sso_configurations" ("id") on delete cascade;
alter table "sso_assertions" add constraint "sso_assertions_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "sso_providers" add constraint "sso_providers_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "sso_setup_links" add constraint "sso_setup_links_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "sso_setup_links" add constraint "sso_setup_links_configuration_id_foreign" foreign key ("configuration_id") references "sso_configurations" ("id") on delete set null;
alter table "sso_transactions" add constraint "sso_transactions_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "sso_transactions" add constraint "sso_transactions_configuration_id_foreign" foreign key ("configuration_id") references "sso_configurations" ("id") on delete cascade;
alter table "stripe_events" add constraint "stripe_events_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "suppressions" add constraint "suppressions_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "suspensions" add constraint "suspensions_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "threads" add constraint "threads_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "threads" add constraint "threads_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
alter table "threads" add constraint "threads_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade;
alter table "threads" add constraint "threads_merged_into_id_foreign" foreign key ("merged_into_id") references "threads" ("id") on delete cascade;
alter table "messages" add constraint "messages_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "messages" add constraint "messages_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
alter table "messages" add constraint "messages_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade;
alter table "messages" add constraint "messages_thread_id_foreign" foreign key ("thread_id") references "threads" ("id") on delete cascade;
alter table "send_attempts" add constraint "send_attempts_message_id_foreign" foreign key ("message_id") references "messages" ("id") on delete cascade;
alter table "message_recipients" add constraint "message_recipients_message_id_foreign" foreign key ("message_id") references "messages" ("id") on delete cascade;
alter table "message_recipients" add constraint "message_recipients_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "message_search" add constraint "message_search_message_id_foreign" foreign key ("message_id") references "messages" ("id") on delete cascade;
alter table "message_search" add constraint "message_search_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "attachments" add constraint "attachments_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "attachments" add constraint "attachments_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade;
alter table "attachments" add constraint "attachments_message_id_foreign" foreign key ("message_id") references "messages" ("id") on delete cascade;
alter table "attachments" add constraint "attachments_draft_id_foreign" foreign key ("draft_id") references "drafts" ("id") on delete cascade;
alter table "thread_message_ids" add constraint "thread_message_ids_thread_id_foreign" foreign key ("thread_id") references "threads" ("id") on delete cascade deferrable initially deferred;
alter table "upgrade_requests" add constraint "upgrade_requests_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "usage_alerts" add constraint "usage_alerts_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "usage_counters" add constraint "usage_counters_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "usage_events" add constraint "usage_events_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "usage_hours" add constraint "usage_hours_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "staff_members" add constraint "staff_members_user_id_foreign" foreign key ("user_id") references "users" ("id") on update cascade on delete cascade;
alter table "sso_identities" add constraint "sso_identities_provider_id_foreign" foreign key ("provider_id") references "sso_providers" ("id") on delete cascade;
alter table "sso_identities" add constraint "sso_identities_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "sso_identities" add constraint "sso_identities_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;
alter table "sessions" add constraint "sessions_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;
alter table "oauth_transactions" add constraint "oauth_transactions_session_id_foreign" foreign key ("session_id") references "sessions" ("id") on delete cascade;
alter table "mfa_recovery_codes" add constraint "mfa_recovery_codes_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;
alter table "oauth_identities" add constraint "oauth_identities_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;
alter table "mfa_enrollments" add constraint "mfa_enrollments_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;
alter table "mfa_challenges" add constraint "mfa_challenges_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;
alter table "members" add constraint "members_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on update cascade on delete cascade;
alter table "members" add constraint "members_user_id_foreign" foreign key ("user_id") references "users" ("id") on update cascade on delete cascade;
alter table "known_devices" add constraint "known_devices_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;
alter table "connections" add constraint "connections_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "connections" add constraint "connections_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
alter table "connections" add constraint "connections_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade;
alter table "connections" add constraint "connections_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;
alter table "connection_tokens" add constraint "connection_tokens_connection_id_foreign" foreign key ("connection_id") references "connections" ("id") on delete cascade;
alter table "account_tokens" add constraint "account_tokens_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;
alter table "webauthn_challenges" add constraint "webauthn_challenges_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;
alter table "webhook_endpoints" add constraint "webhook_endpoints_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "webhook_endpoints" add constraint "webhook_endpoints_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
alter table "webhook_deliveries" add constraint "webhook_deliveries_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "webhook_deliveries" add constraint "webhook_deliveries_endpoint_id_foreign" foreign key ("endpoint_id") references "webhook_endpoints" ("id") on delete cascade;
alter table "webhook_deliveries" add constraint "webhook_deliveries_event_id_foreign" foreign key ("event_id") references "events" ("id") on delete cascade;
alter table "webhook_delivery_attempts" add constraint "webhook_delivery_attempts_delivery_id_foreign" foreign key ("delivery_id") references "webhook_deliveries" ("id") on delete cascade;
alter table "webhook_bulk_jobs" add constraint "webhook_bulk_jobs_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
alter table "webhook_bulk_jobs" add constraint "webhook_bulk_jobs_endpoint_id_foreign" foreign key ("endpoint_id") references "webhook_endpoints" ("id") on delete cascade;
alter table "webhook_slots" add constraint "webhook_slots_endpoint_id_foreign" foreign key ("endpoint_id") references "webhook_endpoints" ("id") on delete cascade;

-- The planner knows the frequency of a word only if it is among the most frequent ones, a thousand by default, and
-- overestimates a rare label in a large inbox sevenfold: it then walks through the inbox instead of using the index.
-- Five thousand are enough, and the analysis still takes seconds.
alter table "message_search" alter column "document" set statistics 500;
