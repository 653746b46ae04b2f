import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/**
 * The first schema. Tables, foreign keys and triggers are as the ORM generates them from the entities; what entities do
 * not express (roles, grants, functions, settings of the search index) is written by hand.
 */
export class Migration20261122000000_initial extends Migration {
  override name = 'Migration20261122000000_initial';

  override up(): void {
    const sections = [
      ...ROLES,
      ...TABLES,
      ...FOREIGN_KEYS,
      ...SEARCH_SETTINGS,
      ...FUNCTIONS,
      ...TRIGGERS,
      ...POLICIES,
      ...TABLE_GRANTS,
      ...FUNCTION_GRANTS,
    ];
    for (const statements of sections) this.addSql(statements);
  }
}

// Roles belong to the cluster and may exist already, for another database.
const ROLES = [
  ...['agent_email_api', 'agent_email_worker', 'agent_email_lookup', 'agent_email_export'].map(
    (role) => `do $$ begin
      if not exists (select from pg_roles where rolname = '${role}') then create role "${role}" nologin; end if;
    end $$`,
  ),
  // Workers read exports as this role: row-level security binds it as it binds the API.
  `grant agent_email_api to agent_email_export;
   grant agent_email_export to agent_email_worker`,
  // The owner of a function must be a role the migrating user belongs to.
  `grant agent_email_lookup to current_user`,
];

const TABLES = [
  // Identity and organizations
  `create table "users" (
     "id" text collate "C" not null,
     "email" text not null,
     "name" text null,
     "password_hash" text null,
     "created_at" timestamptz(3) not null,
     "updated_at" timestamptz(3) not null,
     primary key ("id")
   );
   alter table "users" add constraint "users_email_unique" unique ("email")`,
  `create table "organizations" (
     "id" text collate "C" not null,
     "name" text not null,
     "slug" text not null,
     "status" text not null default 'active',
     "tier" text not null default 'enterprise',
     "created_at" timestamptz(3) not null,
     "updated_at" timestamptz(3) not null,
     primary key ("id")
   );
   alter table "organizations" add constraint "organizations_slug_unique" unique ("slug");
   alter table "organizations" add constraint "organizations_tier" check (tier = ANY (ARRAY['free'::text, 'developer'::text, 'business'::text, 'enterprise'::text]))`,
  `create table "environments" (
     "id" text collate "C" not null,
     "org_id" text collate "C" not null,
     "name" text not null,
     "kind" text not null,
     "status" text not null default 'active',
     "created_at" timestamptz(3) not null,
     "updated_at" timestamptz(3) not null,
     primary key ("id")
   );
   alter table "environments" add constraint "environments_org_id_name_unique" unique ("org_id", "name")`,
  `create table "members" (
     "org_id" text collate "C" not null,
     "user_id" text collate "C" not null,
     "role" text not null,
     "created_at" timestamptz(3) not null,
     primary key ("org_id", "user_id")
   )`,
  `create table "api_keys" (
     "id" text collate "C" not null,
     "org_id" text collate "C" not null,
     "env_id" text collate "C" null,
     "inbox_id" text collate "C" null,
     "name" text not null,
     "token_hash" bytea not null,
     "last_four" text not null,
     "permissions" text[] not null,
     "expires_at" timestamptz(3) null,
     "revoked_at" timestamptz(3) null,
     "last_used_at" timestamptz(3) null,
     "created_at" timestamptz(3) not null,
     primary key ("id")
   );
   alter table "api_keys" add constraint "api_keys_token_hash_unique" unique ("token_hash");
   create index "api_keys_org_id_id_index" on "api_keys" ("org_id", "id")`,
  // Usage and limits
  `create table "usage_counters" (
     "org_id" text collate "C" not null,
     "counter" text not null,
     "period_start" timestamptz(3) not null,
     "amount" bigint not null,
     primary key ("org_id", "counter", "period_start")
   )`,
  `create table "usage_deltas" (
     "id" bigserial primary key,
     "org_id" text collate "C" not null,
     "counter" text not null,
     "at" timestamptz(3) not null,
     "amount" bigint not null
   );
   create index "usage_deltas_org_id_counter_index" on "usage_deltas" ("org_id", "counter")`,
  `create table "usage_hours" (
     "org_id" text collate "C" not null,
     "counter" text not null,
     "hour" timestamptz(3) not null,
     "amount" bigint not null,
     primary key ("org_id", "counter", "hour")
   );
   create index "usage_hours_org_id_hour_index" on "usage_hours" ("org_id", "hour");
   create index "usage_hours_hour_index" on "usage_hours" ("hour")`,
  `create table "usage_events" (
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
   create unique index "usage_events_period_unique" on "usage_events" ("org_id", ("data" ->> 'period_start')) where "kind" = 'period_closed'`,
  `create table "usage_alerts" (
     "org_id" text collate "C" not null,
     "counter" text not null,
     "threshold" smallint not null,
     "period_start" timestamptz(3) not null,
     "created_at" timestamptz(3) not null,
     primary key ("org_id", "counter", "threshold", "period_start")
   );
   create index "usage_alerts_period_start_index" on "usage_alerts" ("period_start")`,
  `create table "limit_overrides" (
     "org_id" text collate "C" not null,
     "resource" text not null,
     "amount" bigint null,
     "kind" text not null,
     "expires_at" timestamptz(3) null,
     "reason" text not null,
     "created_by" text not null,
     "created_at" timestamptz(3) not null,
     primary key ("org_id", "resource")
   );
   alter table "limit_overrides" add constraint "limit_overrides_not_negative" check (amount >= 0);
   alter table "limit_overrides" add constraint "limit_overrides_resource" check (resource = ANY (ARRAY['messages_sent'::text, 'messages_received'::text, 'storage_bytes'::text, 'api_calls'::text, 'webhook_deliveries'::text, 'inboxes'::text, 'domains'::text]));
   alter table "limit_overrides" add constraint "limit_overrides_kind" check (kind = ANY (ARRAY['soft'::text, 'hard'::text]))`,
  `create table "custom_limits" (
     "org_id" text collate "C" not null,
     "counter" text not null,
     "amount" bigint null,
     "warning_percent" smallint null,
     "updated_at" timestamptz(3) not null,
     primary key ("org_id", "counter")
   );
   alter table "custom_limits" add constraint "custom_limits_not_negative" check (amount >= 0);
   alter table "custom_limits" add constraint "custom_limits_warning" check (warning_percent >= 1 and warning_percent <= 99)`,
  // Domains and inboxes
  `create table "domains" (
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
     "episode" int not null default 1,
     "episode_started_at" timestamptz(3) not null,
     "next_check_at" timestamptz(3) null,
     "last_checked_at" timestamptz(3) null,
     "verified_at" timestamptz(3) null,
     "reconciled_at" timestamptz(3) null,
     "created_at" timestamptz(3) not null,
     "updated_at" timestamptz(3) not null,
     primary key ("id")
   );
   create index "domains_org_id_id_index" on "domains" ("org_id", "id");
   create index "domains_next_check_index" on "domains" ("next_check_at") where "next_check_at" is not null;
   alter table "domains" add constraint "domains_org_id_domain_name_unique" unique ("org_id", "domain_name");
   create unique index "domains_client_id_unique" on "domains" ("org_id", "client_id");
   create unique index "domains_verified_name_unique" on "domains" ("domain_name") where "verification_status" = 'verified'`,
  `create table "dkim_keys" (
     "domain_id" text collate "C" not null,
     "selector" text not null,
     "org_id" text collate "C" not null,
     "state" text not null,
     "public_key" text not null,
     "private_key" bytea not null,
     "created_at" timestamptz(3) not null,
     "retired_at" timestamptz(3) null,
     primary key ("domain_id", "selector")
   )`,
  `create table "inboxes" (
     "id" text collate "C" not null,
     "org_id" text collate "C" not null,
     "env_id" text collate "C" not null,
     "email" text not null,
     "username" text not null,
     "domain" text not null,
     "domain_id" text collate "C" null,
     "display_name" text null,
     "client_id" text null,
     "status" text not null default 'active',
     "send_paused" boolean not null default false,
     "send_paused_reason" text null,
     "send_resumed_at" timestamptz(3) null,
     "created_at" timestamptz(3) not null,
     "updated_at" timestamptz(3) not null,
     "deleted_at" timestamptz(3) null,
     "purge_requested_at" timestamptz(3) null,
     "purged_at" timestamptz(3) null,
     "reconciled_at" timestamptz(3) null,
     primary key ("id")
   );
   create index "inboxes_env_id_id_index" on "inboxes" ("env_id", "id");
   create index "inboxes_domain_id_index" on "inboxes" ("domain_id");
   create index "inboxes_pending_purge_index" on "inboxes" ("purge_requested_at") where "purge_requested_at" is not null and "purged_at" is null;
   create unique index "inboxes_email_unique" on "inboxes" ("email") where "deleted_at" is null;
   create unique index "inboxes_client_id_unique" on "inboxes" ("org_id", "client_id") where "deleted_at" is null`,
  `create table "address_claims" (
     "email" text not null,
     "org_id" text collate "C" not null,
     "inbox_id" text collate "C" not null,
     "released_at" timestamptz(3) null,
     primary key ("email")
   )`,
  `create table "inbox_credentials" (
     "inbox_id" text collate "C" not null,
     "org_id" text collate "C" not null,
     "password_hash" bytea not null,
     "rotated_at" timestamptz(3) not null,
     primary key ("inbox_id")
   )`,
  // Messages
  `create table "threads" (
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
     "created_at" timestamptz(3) not null,
     "updated_at" timestamptz(3) not null,
     primary key ("id")
   );
   create index "threads_inbox_id_last_message_at_id_index" on "threads" ("inbox_id", "last_message_at", "id");
   create index "threads_env_id_last_message_at_id_index" on "threads" ("env_id", "last_message_at", "id");
   create index "threads_inbox_id_base_subject_last_message_at_index" on "threads" ("inbox_id", "base_subject", "last_message_at")`,
  `create table "messages" (
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
     "subject" text not null,
     "preview" text not null default '',
     "text_body" text null,
     "html_body" text null,
     "extracted_text" text null,
     "labels" text[] not null default '{}',
     "has_attachments" boolean not null default false,
     "rfc_message_id" text null,
     "in_reply_to" text null,
     "reference_ids" text[] not null default '{}',
     "provider_message_id" text null,
     "size_bytes" int not null default 0,
     "headers" jsonb not null,
     "authentication" jsonb null,
     "spam" jsonb null,
     "automated" boolean not null default false,
     "signals" text[] not null default '{}',
     "announced" boolean not null default true,
     "parse_error" text null,
     "raw_key" text null,
     "submitted_key" text null,
     "tracked" boolean not null default false,
     "reconciled_at" timestamptz(3) null,
     "created_at" timestamptz(3) not null,
     "updated_at" timestamptz(3) not null,
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
   create index "messages_unsettled_index" on "messages" ("updated_at") where "status" in ('queued', 'sending', 'deferred', 'needs_attention')`,
  `create table "message_recipients" (
     "message_id" text collate "C" not null,
     "position" smallint not null,
     "org_id" text collate "C" not null,
     "field" text not null,
     "email" text not null,
     "status" text not null default 'pending',
     "status_code" text null,
     "diagnostic_code" text null,
     "sent_at" timestamptz(3) null,
     "updated_at" timestamptz(3) not null,
     primary key ("message_id", "position")
   )`,
  `create table "message_search" (
     "inbox_id" text collate "C" not null,
     "message_id" text collate "C" not null,
     "org_id" text collate "C" not null,
     "env_id" text collate "C" not null,
     "document" tsvector not null,
     primary key ("inbox_id", "message_id")
   );
   create index "message_search_env_id_message_id_index" on "message_search" ("env_id", "message_id");
   create index "message_search_message_index" on "message_search" using hash ("message_id");
   create index "message_search_document_index" on "message_search" using gin ("document") with (gin_pending_list_limit = 512)`,
  `create table "send_attempts" (
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
     "started_at" timestamptz(3) not null,
     "finished_at" timestamptz(3) null,
     primary key ("message_id", "position", "number")
   );
   create index "send_attempts_provider_message_id_index" on "send_attempts" ("provider_message_id") where "provider_message_id" is not null`,
  `create table "drafts" (
     "id" text collate "C" not null,
     "org_id" text collate "C" not null,
     "env_id" text collate "C" not null,
     "inbox_id" text collate "C" not null,
     "thread_id" text null,
     "in_reply_to" text null,
     "subject" text null,
     "to" jsonb not null,
     "cc" jsonb not null,
     "bcc" jsonb not null,
     "reply_to" jsonb not null,
     "text_body" text null,
     "html_body" text null,
     "labels" text[] not null default '{}',
     "headers" jsonb not null,
     "send_at" timestamptz(3) null,
     "send_status" text not null default 'draft',
     "send_error" text null,
     "schedule_version" int not null default 0,
     "version" int not null default 1,
     "reconciled_at" timestamptz(3) null,
     "created_at" timestamptz(3) not null,
     "updated_at" timestamptz(3) not null,
     primary key ("id")
   );
   create index "drafts_inbox_id_id_index" on "drafts" ("inbox_id", "id");
   create index "drafts_scheduled_index" on "drafts" ("send_at") where "send_status" = 'scheduled'`,
  `create table "attachments" (
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
     "disposition" text not null,
     "created_at" timestamptz(3) not null,
     primary key ("id")
   );
   create index "attachments_message_id_position_index" on "attachments" ("message_id", "position");
   create index "attachments_draft_id_position_index" on "attachments" ("draft_id", "position");
   create index "attachments_storage_key_index" on "attachments" ("storage_key");
   create index "attachments_unused_index" on "attachments" ("created_at") where "message_id" is null and "draft_id" is null;
   alter table "attachments" add constraint "attachments_one_owner" check (message_id is null or draft_id is null)`,
  `create table "unclaimed_objects" (
     "storage_key" text not null,
     "org_id" text collate "C" null,
     "due_at" timestamptz(3) not null,
     "deleting" boolean not null default false,
     primary key ("storage_key")
   );
   create index "unclaimed_objects_due_at_index" on "unclaimed_objects" ("due_at")`,
  `create table "inbound_receipts" (
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
     "reconciled_at" timestamptz(3) null,
     "received_at" timestamptz(3) not null,
     "processed_at" timestamptz(3) null,
     primary key ("id")
   );
   create index "inbound_receipts_raw_key_index" on "inbound_receipts" ("raw_key");
   create index "inbound_receipts_unprocessed_index" on "inbound_receipts" ("received_at") where "status" = 'received';
   create index "inbound_receipts_expired_index" on "inbound_receipts" ("processed_at") where "kind" = 'report' or "duplicate_of" is not null;
   create unique index "inbound_receipts_fingerprint_unique" on "inbound_receipts" ("inbox_id", "fingerprint") where "fingerprint" is not null;
   create unique index "inbound_receipts_transport_unique" on "inbound_receipts" ("inbox_id", "transport_id") where "transport_id" is not null`,
  `create table "unattributed_reports" (
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
   create index "unattributed_reports_received_at_index" on "unattributed_reports" ("received_at")`,
  // Deliverability and metrics
  `create table "suppressions" (
     "id" text collate "C" not null,
     "org_id" text collate "C" not null,
     "email" text not null,
     "origin" text not null,
     "env_id" text collate "C" null,
     "inbox_id" text collate "C" null,
     "message_id" text collate "C" null,
     "status" text null,
     "diagnostic" text null,
     "created_at" timestamptz(3) not null,
     primary key ("id")
   );
   create index "suppressions_org_id_id_index" on "suppressions" ("org_id", "id");
   alter table "suppressions" add constraint "suppressions_org_id_email_unique" unique ("org_id", "email")`,
  `create table "list_entries" (
     "id" text collate "C" not null,
     "org_id" text collate "C" not null,
     "direction" text not null,
     "effect" text not null,
     "entry" text not null,
     "env_id" text collate "C" null,
     "inbox_id" text collate "C" null,
     "created_at" timestamptz(3) not null,
     primary key ("id")
   );
   create index "list_entries_org_id_direction_effect_id_index" on "list_entries" ("org_id", "direction", "effect", "id");
   create unique index "list_entries_unique" on "list_entries" ("org_id", "direction", "entry", "effect", "env_id", "inbox_id") nulls not distinct`,
  `create table "reputation_outcomes" (
     "inbox_id" text collate "C" not null,
     "kind" text not null,
     "message_id" text collate "C" not null,
     "position" smallint not null,
     "org_id" text collate "C" not null,
     "created_at" timestamptz(3) not null,
     primary key ("inbox_id", "kind", "message_id", "position")
   );
   create index "reputation_outcomes_created_at_index" on "reputation_outcomes" ("created_at")`,
  `create table "metric_deltas" (
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
   create index "metric_deltas_env_id_hour_index" on "metric_deltas" ("env_id", "hour")`,
  `create table "metric_hours" (
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
   )`,
  // Events, webhooks and notifications
  `create table "events" (
     "id" text collate "C" not null,
     "org_id" text collate "C" not null,
     "env_id" text collate "C" not null,
     "inbox_id" text collate "C" null,
     "type" text not null,
     "data" jsonb not null,
     "test" boolean not null default false,
     "created_at" timestamptz(3) not null,
     "transaction_id" xid8 not null default pg_current_xact_id(),
     primary key ("id")
   );
   create index "events_env_id_id_index" on "events" ("env_id", "id");
   create index "events_env_id_transaction_id_id_index" on "events" ("env_id", "transaction_id", "id");
   create index "events_env_id_type_transaction_id_id_index" on "events" ("env_id", "type", "transaction_id", "id");
   create index "events_inbox_index" on "events" ("inbox_id", "transaction_id", "id") where "inbox_id" is not null;
   create index "events_organization_index" on "events" ("org_id", "transaction_id", "id") where "inbox_id" is null`,
  `create table "webhook_endpoints" (
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
     "created_at" timestamptz(3) not null,
     "updated_at" timestamptz(3) not null,
     "deleted_at" timestamptz(3) null,
     primary key ("id")
   );
   create index "webhook_endpoints_env_id_id_index" on "webhook_endpoints" ("env_id", "id")`,
  `create table "webhook_deliveries" (
     "id" text collate "C" not null,
     "org_id" text collate "C" not null,
     "endpoint_id" text collate "C" not null,
     "event_id" text collate "C" not null,
     "status" text not null,
     "held_for" text null,
     "attempts" int not null default 0,
     "prior_attempts" int not null default 0,
     "episode" int not null default 1,
     "next_attempt_at" timestamptz(3) null,
     "last_status_code" int null,
     "last_error" text null,
     "reconciled_at" timestamptz(3) null,
     "created_at" timestamptz(3) not null,
     "completed_at" timestamptz(3) null,
     primary key ("id")
   );
   create index "webhook_deliveries_endpoint_id_id_index" on "webhook_deliveries" ("endpoint_id", "id");
   create index "webhook_deliveries_endpoint_id_status_id_index" on "webhook_deliveries" ("endpoint_id", "status", "id");
   create index "webhook_deliveries_event_id_endpoint_id_index" on "webhook_deliveries" ("event_id", "endpoint_id");
   create index "webhook_deliveries_pending_index" on "webhook_deliveries" ("next_attempt_at") where "status" = 'pending';
   create index "webhook_deliveries_over_limit_index" on "webhook_deliveries" ("org_id", "id") where "status" = 'held' and "held_for" = 'usage_limit';
   create index "webhook_deliveries_held_index" on "webhook_deliveries" ("created_at") where "status" = 'held'`,
  `create table "webhook_delivery_attempts" (
     "delivery_id" text collate "C" not null,
     "number" int not null,
     "org_id" text collate "C" not null,
     "started_at" timestamptz(3) not null,
     "finished_at" timestamptz(3) null,
     "duration_ms" int null,
     "status_code" int null,
     "response_body" text null,
     "error" text null,
     primary key ("delivery_id", "number")
   )`,
  `create table "webhook_slots" (
     "endpoint_id" text collate "C" not null,
     "slot" smallint not null,
     "org_id" text collate "C" not null,
     "leased_until" timestamptz(3) not null,
     "delivery_id" text collate "C" null,
     primary key ("endpoint_id", "slot")
   )`,
  `create table "webhook_bulk_jobs" (
     "id" text collate "C" not null,
     "org_id" text collate "C" not null,
     "env_id" text collate "C" not null,
     "endpoint_id" text collate "C" not null,
     "kind" text not null,
     "status" text not null default 'running',
     "detail" text null,
     "since" timestamptz(3) null,
     "until" timestamptz(3) not null,
     "event_types" text[] null,
     "only_failed" boolean not null default false,
     "position" text collate "C" null,
     "deliveries" int not null default 0,
     "reconciled_at" timestamptz(3) null,
     "created_at" timestamptz(3) not null,
     "completed_at" timestamptz(3) null,
     primary key ("id")
   );
   create unique index "webhook_bulk_jobs_running_unique" on "webhook_bulk_jobs" ("endpoint_id") where "status" = 'running'`,
  `create table "notifications" (
     "id" text collate "C" not null,
     "org_id" text collate "C" not null,
     "user_id" text collate "C" null,
     "email" text not null,
     "template" text not null,
     "params" jsonb not null,
     "dedupe_key" text not null,
     "status" text not null default 'pending',
     "attempts" int not null default 0,
     "next_attempt_at" timestamptz(3) null,
     "last_error" text null,
     "reconciled_at" timestamptz(3) null,
     "created_at" timestamptz(3) not null,
     "sent_at" timestamptz(3) null,
     primary key ("id")
   );
   alter table "notifications" add constraint "notifications_dedupe_key_unique" unique ("dedupe_key");
   create index "notifications_org_id_id_index" on "notifications" ("org_id", "id");
   create index "notifications_unsent_index" on "notifications" ("next_attempt_at") where "status" in ('pending', 'sending')`,
  // Retention and exports
  `create table "retention_policies" (
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
     "created_at" timestamptz(3) not null,
     primary key ("org_id")
   )`,
  `create table "exports" (
     "id" text collate "C" not null,
     "org_id" text collate "C" not null,
     "requested_by" text collate "C" not null,
     "status" text not null default 'queued',
     "status_detail" text null,
     "checkpoint" int not null default 0,
     "upload_id" text null,
     "storage_key" text not null,
     "part_size_bytes" int not null default 0,
     "position" jsonb null,
     "part_buffer" bytea null,
     "rows_done" bigint not null default '0',
     "rows_total" bigint not null default '0',
     "files_done" bigint not null default '0',
     "files_total" bigint not null default '0',
     "size_bytes" bigint not null default '0',
     "started_at" timestamptz(3) null,
     "completed_at" timestamptz(3) null,
     "expires_at" timestamptz(3) null,
     "reconciled_at" timestamptz(3) null,
     "created_at" timestamptz(3) not null,
     "updated_at" timestamptz(3) not null,
     primary key ("id")
   );
   create index "exports_org_id_id_index" on "exports" ("org_id", "id");
   create unique index "exports_running_unique" on "exports" ("org_id") where "status" in ('queued', 'running');
   create index "exports_cleanup_index" on "exports" ("updated_at") where "status" = 'ready' or "upload_id" is not null`,
  `create table "export_segments" (
     "export_id" text collate "C" not null,
     "number" int not null,
     "org_id" text collate "C" not null,
     "part_number" int null,
     "etag" text null,
     "central_directory" bytea not null,
     "missing_files" text not null,
     primary key ("export_id", "number")
   )`,
  // Platform
  `create table "outbox" (
     "id" bigserial primary key,
     "org_id" text collate "C" not null,
     "command" jsonb not null,
     "available_at" timestamptz(3) not null,
     "attempts" int not null default 0,
     "last_error" text null,
     "dead_at" timestamptz(3) null,
     "created_at" timestamptz(3) not null
   );
   create index "outbox_due_index" on "outbox" ("available_at") where "dead_at" is null;
   create index "outbox_dead_index" on "outbox" ("dead_at") where "dead_at" is not null`,
  `create table "idempotency_keys" (
     "id" bytea not null,
     "org_id" text collate "C" not null,
     "request_hash" bytea not null,
     "status" smallint not null,
     "content_type" text not null,
     "body" bytea not null,
     "created_at" timestamptz(3) not null,
     primary key ("id")
   );
   create index "idempotency_keys_created_at_index" on "idempotency_keys" ("created_at")`,
  `create table "rate_buckets" (
     "id" text not null,
     "tokens" double precision not null,
     "refilled_at" timestamptz(3) not null,
     primary key ("id")
   )`,
];

const FOREIGN_KEYS = [
  `alter table "environments" add constraint "environments_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "members" add constraint "members_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on update cascade on delete cascade;
   alter table "members" add constraint "members_user_id_foreign" foreign key ("user_id") references "users" ("id") on update cascade on delete cascade`,
  `alter table "api_keys" add constraint "api_keys_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
   alter table "api_keys" add constraint "api_keys_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
   alter table "api_keys" add constraint "api_keys_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade`,
  `alter table "usage_counters" add constraint "usage_counters_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "usage_hours" add constraint "usage_hours_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "usage_events" add constraint "usage_events_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "usage_alerts" add constraint "usage_alerts_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "limit_overrides" add constraint "limit_overrides_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "custom_limits" add constraint "custom_limits_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "domains" add constraint "domains_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "dkim_keys" add constraint "dkim_keys_domain_id_foreign" foreign key ("domain_id") references "domains" ("id") on delete cascade`,
  `alter table "inboxes" add constraint "inboxes_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
   alter table "inboxes" add constraint "inboxes_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
   alter table "inboxes" add constraint "inboxes_domain_id_foreign" foreign key ("domain_id") references "domains" ("id") on delete set null`,
  `alter table "inbox_credentials" add constraint "inbox_credentials_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on update cascade on delete cascade;
   alter table "inbox_credentials" add constraint "inbox_credentials_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "threads" add constraint "threads_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
   alter table "threads" add constraint "threads_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
   alter table "threads" add constraint "threads_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade`,
  `alter table "messages" add constraint "messages_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
   alter table "messages" add constraint "messages_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
   alter table "messages" add constraint "messages_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade;
   alter table "messages" add constraint "messages_thread_id_foreign" foreign key ("thread_id") references "threads" ("id") on delete cascade`,
  `alter table "message_recipients" add constraint "message_recipients_message_id_foreign" foreign key ("message_id") references "messages" ("id") on delete cascade;
   alter table "message_recipients" add constraint "message_recipients_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "message_search" add constraint "message_search_message_id_foreign" foreign key ("message_id") references "messages" ("id") on delete cascade;
   alter table "message_search" add constraint "message_search_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "send_attempts" add constraint "send_attempts_message_id_foreign" foreign key ("message_id") references "messages" ("id") on delete cascade`,
  `alter table "drafts" add constraint "drafts_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
   alter table "drafts" add constraint "drafts_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
   alter table "drafts" add constraint "drafts_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade`,
  `alter table "attachments" add constraint "attachments_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
   alter table "attachments" add constraint "attachments_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade;
   alter table "attachments" add constraint "attachments_message_id_foreign" foreign key ("message_id") references "messages" ("id") on delete cascade;
   alter table "attachments" add constraint "attachments_draft_id_foreign" foreign key ("draft_id") references "drafts" ("id") on delete cascade`,
  `alter table "inbound_receipts" add constraint "inbound_receipts_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "suppressions" add constraint "suppressions_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "list_entries" add constraint "list_entries_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
   alter table "list_entries" add constraint "list_entries_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
   alter table "list_entries" add constraint "list_entries_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade`,
  `alter table "reputation_outcomes" add constraint "reputation_outcomes_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "metric_hours" add constraint "metric_hours_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;
   alter table "metric_hours" add constraint "metric_hours_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "events" add constraint "events_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
   alter table "events" add constraint "events_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade`,
  `alter table "webhook_endpoints" add constraint "webhook_endpoints_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
   alter table "webhook_endpoints" add constraint "webhook_endpoints_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade`,
  `alter table "webhook_deliveries" add constraint "webhook_deliveries_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
   alter table "webhook_deliveries" add constraint "webhook_deliveries_endpoint_id_foreign" foreign key ("endpoint_id") references "webhook_endpoints" ("id") on delete cascade;
   alter table "webhook_deliveries" add constraint "webhook_deliveries_event_id_foreign" foreign key ("event_id") references "events" ("id") on delete cascade`,
  `alter table "webhook_delivery_attempts" add constraint "webhook_delivery_attempts_delivery_id_foreign" foreign key ("delivery_id") references "webhook_deliveries" ("id") on delete cascade`,
  `alter table "webhook_slots" add constraint "webhook_slots_endpoint_id_foreign" foreign key ("endpoint_id") references "webhook_endpoints" ("id") on delete cascade`,
  `alter table "webhook_bulk_jobs" add constraint "webhook_bulk_jobs_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;
   alter table "webhook_bulk_jobs" add constraint "webhook_bulk_jobs_endpoint_id_foreign" foreign key ("endpoint_id") references "webhook_endpoints" ("id") on delete cascade`,
  `alter table "notifications" add constraint "notifications_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "retention_policies" add constraint "retention_policies_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on update cascade on delete cascade`,
  `alter table "exports" add constraint "exports_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "export_segments" add constraint "export_segments_export_id_foreign" foreign key ("export_id") references "exports" ("id") on delete cascade`,
];

const SEARCH_SETTINGS = [
  // The planner knows the frequency of a word only if it is among the most frequent ones, a thousand by default, and
  // overestimates a rare label in a large inbox sevenfold: it then walks through the inbox instead of using the index.
  // Five thousand are enough, and the analysis still takes seconds.
  `alter table "message_search" alter column "document" set statistics 500`,
];

const FUNCTIONS = [
  ...[
    'claim_address',
    'claim_domain',
    'count_api_calls',
    'count_message',
    'count_storage',
    'find_api_key',
    'index_message',
    'lease_rate_tokens',
    'reindex_message_labels',
    'release_attachment_object',
    'release_message_objects',
    'search_address',
    'search_document',
    'search_labels',
    'search_messages',
    'search_words',
    'signal_event',
  ].map(replaceSqlFunction),
  // These see the rows of every tenant, so each checks the organization itself.
  `grant create on schema public to agent_email_lookup;
   alter function find_api_key owner to agent_email_lookup;
   alter function claim_address(text, text, text) owner to agent_email_lookup;
   alter function claim_domain(text, text) owner to agent_email_lookup;
   alter function count_api_calls(jsonb, timestamptz, timestamptz) owner to agent_email_lookup;
   alter function search_messages(text, text, text, text, text, text, text, timestamptz, timestamptz, text, text, boolean, integer)
     owner to agent_email_lookup;
   revoke create on schema public from agent_email_lookup`,
];

const TRIGGERS = [
  `create trigger "signal_event" after insert on "events" for each row execute function "signal_event"()`,
  `create trigger "release_objects" after delete on "messages" for each row execute function "release_message_objects"()`,
  `create trigger "index_message" after insert on "messages" for each row execute function "index_message"()`,
  `create trigger "reindex_labels" after update on "messages" for each row when (old.labels is distinct from new.labels) execute function "reindex_message_labels"()`,
  `create trigger "count_insert" after insert on "messages" for each row when (coalesce(new.sent_at, new.delivered_at, new.bounced_at, new.complained_at, new.received_at) is not null
    or new.status = 'rejected') execute function "count_message"()`,
  `create trigger "count_update" after update on "messages" for each row when (old.sent_at is distinct from new.sent_at or old.delivered_at is distinct from new.delivered_at
    or old.bounced_at is distinct from new.bounced_at or old.complained_at is distinct from new.complained_at
    or old.received_at is distinct from new.received_at or old.announced is distinct from new.announced
    or new.status = 'rejected' and old.status <> 'rejected') execute function "count_message"()`,
  `create trigger "attachments_release_object" after delete on "attachments" for each row execute function "release_attachment_object"()`,
  `create trigger "attachments_count_added" after insert on "attachments" referencing new table as changed for each statement execute function "count_storage"()`,
  `create trigger "attachments_count_removed" after delete on "attachments" referencing old table as changed for each statement execute function "count_storage"()`,
];

const TENANT_TABLES = [
  'environments',
  'members',
  'api_keys',
  'usage_counters',
  'usage_deltas',
  'usage_hours',
  'usage_events',
  'usage_alerts',
  'limit_overrides',
  'custom_limits',
  'domains',
  'dkim_keys',
  'inboxes',
  'address_claims',
  'inbox_credentials',
  'threads',
  'messages',
  'message_recipients',
  'message_search',
  'send_attempts',
  'drafts',
  'attachments',
  'unclaimed_objects',
  'inbound_receipts',
  'suppressions',
  'list_entries',
  'reputation_outcomes',
  'metric_deltas',
  'metric_hours',
  'events',
  'webhook_endpoints',
  'webhook_deliveries',
  'webhook_delivery_attempts',
  'webhook_slots',
  'webhook_bulk_jobs',
  'notifications',
  'retention_policies',
  'exports',
  'export_segments',
  'outbox',
  'idempotency_keys',
];
/** Tables that the functions of agent_email_lookup read or write before a tenant is known. */
const LOOKUP_TABLES = [
  'address_claims',
  'organizations',
  'limit_overrides',
  'environments',
  'domains',
  'custom_limits',
  'api_keys',
  'messages',
  'message_search',
  'usage_counters',
  'usage_deltas',
];

const policiesOf = (table: string, column: string) => `
  alter table "${table}" enable row level security;
  create policy "tenant" on "${table}" to "agent_email_api"
    using (${column} = nullif(current_setting('app.org_id', true), ''))
    with check (${column} = nullif(current_setting('app.org_id', true), ''));
  create policy "worker" on "${table}" to "agent_email_worker" using (true) with check (true)`;

const POLICIES = [
  policiesOf('organizations', 'id'),
  ...TENANT_TABLES.map((table) => policiesOf(table, 'org_id')),
  ...LOOKUP_TABLES.map(
    (table) => `create policy "lookup" on "${table}" to "agent_email_lookup" using (true) with check (true)`,
  ),
];

/** Under row-level security. */
const API_GRANTS = {
  'select, insert, update, delete': [
    'api_keys',
    'attachments',
    'custom_limits',
    'dkim_keys',
    'domains',
    'drafts',
    'events',
    'idempotency_keys',
    'inbox_credentials',
    'inboxes',
    'list_entries',
    'message_recipients',
    'messages',
    'outbox',
    'rate_buckets',
    'suppressions',
    'threads',
    'unclaimed_objects',
    'webhook_deliveries',
    'webhook_endpoints',
  ],
  // The triggers of messages write `message_search` as the role that writes the message, and an update reads. Searches
  // go through search_messages.
  'select, insert, update': [
    'exports',
    'message_search',
    'retention_policies',
    'usage_counters',
    'usage_hours',
    'webhook_bulk_jobs',
  ],
  'select, insert': ['metric_deltas', 'usage_deltas', 'usage_events'],
  'select, update': ['address_claims', 'environments', 'organizations'],
  select: [
    'limit_overrides',
    'members',
    'metric_hours',
    'send_attempts',
    'usage_alerts',
    'webhook_delivery_attempts',
  ],
};

const TABLE_GRANTS = [
  `grant usage on schema public
     to agent_email_api, agent_email_worker, agent_email_lookup, agent_email_export;
   grant usage, select on all sequences in schema public to agent_email_api, agent_email_worker`,
  `grant select, insert, update, delete on all tables in schema public to agent_email_worker;
   revoke update on unattributed_reports from agent_email_worker`,
  ...Object.entries(API_GRANTS).map(
    ([privileges, tables]) => `grant ${privileges} on ${tables.join(', ')} to agent_email_api`,
  ),
  `grant select on api_keys, custom_limits, domains, environments, limit_overrides, message_search, messages,
     organizations, usage_counters to agent_email_lookup;
   grant select, insert, update on address_claims to agent_email_lookup;
   grant select, insert on usage_deltas to agent_email_lookup;
   grant usage, select on sequence usage_deltas_id_seq to agent_email_lookup`,
  // Besides what the API may read: of users, what their organization knows.
  `grant select on notifications to agent_email_export;
   grant select (id, email, name) on users to agent_email_export`,
];

const FUNCTION_GRANTS = [
  `revoke all on function find_api_key, claim_address(text, text, text), claim_domain(text, text),
     count_api_calls(jsonb, timestamptz, timestamptz),
     search_messages(text, text, text, text, text, text, text, timestamptz, timestamptz, text, text, boolean, integer)
     from public;
   grant execute on function find_api_key, claim_address(text, text, text), claim_domain(text, text),
     count_api_calls(jsonb, timestamptz, timestamptz) to agent_email_api, agent_email_worker;
   grant execute on function
     search_messages(text, text, text, text, text, text, text, timestamptz, timestamptz, text, text, boolean, integer)
     to agent_email_api`,
];
