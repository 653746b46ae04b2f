import { Migration } from '@mikro-orm/migrations';

/** The first schema: tables as the ORM generates them, then roles, grants and the functions that see across tenants. */
export class Migration20261121000000 extends Migration {
  override up(): void {
    for (const statement of [...ROLES, ...TABLES, ...GRANTS, ...FUNCTIONS]) this.addSql(statement);
  }
}

// Roles belong to the cluster and may be there from another database.
const ROLES = ['agent_email_api', 'agent_email_worker', 'agent_email_lookup'].map(
  (role) => `do $$ begin
    if not exists (select from pg_roles where rolname = '${role}') then create role "${role}" nologin; end if;
  end $$`,
);

const TABLES = [
  `create table "address_claims" ("email" text not null, "org_id" text collate "C" not null, "inbox_id" text collate "C" not null, "released_at" timestamptz(3) null, primary key ("email"))`,
  `create table "idempotency_keys" ("id" bytea not null, "org_id" text collate "C" not null, "request_hash" bytea not null, "status" smallint not null, "content_type" text not null, "body" bytea not null, "created_at" timestamptz(3) not null, primary key ("id"))`,
  `create index "idempotency_keys_created_at_index" on "idempotency_keys" ("created_at")`,
  `create table "organizations" ("id" text collate "C" not null, "name" text not null, "slug" text not null, "status" text not null default 'active', "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, primary key ("id"))`,
  `alter table "organizations" add constraint "organizations_slug_unique" unique ("slug")`,
  `create table "environments" ("id" text collate "C" not null, "org_id" text collate "C" not null, "name" text not null, "kind" text not null, "status" text not null default 'active', "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, primary key ("id"))`,
  `alter table "environments" add constraint "environments_org_id_name_unique" unique ("org_id", "name")`,
  `create table "inboxes" ("id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" not null, "email" text not null, "username" text not null, "domain" text not null, "display_name" text null, "client_id" text null, "status" text not null default 'active', "send_paused" boolean not null default false, "send_paused_reason" text null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, "deleted_at" timestamptz(3) null, primary key ("id"))`,
  `create index "inboxes_env_id_id_index" on "inboxes" ("env_id", "id")`,
  `create unique index "inboxes_email_unique" on "inboxes" ("email") where "deleted_at" is null`,
  `create unique index "inboxes_client_id_unique" on "inboxes" ("org_id", "client_id") where "deleted_at" is null`,
  `create table "events" ("id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" not null, "inbox_id" text collate "C" null, "type" text not null, "data" jsonb not null, "created_at" timestamptz(3) not null, primary key ("id"))`,
  `create index "events_env_id_id_index" on "events" ("env_id", "id")`,
  `create table "drafts" ("id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" not null, "inbox_id" text collate "C" not null, "thread_id" text null, "in_reply_to" text null, "subject" text null, "to" jsonb not null, "cc" jsonb not null, "bcc" jsonb not null, "reply_to" jsonb not null, "text_body" text null, "html_body" text null, "labels" text[] not null default '{}', "headers" jsonb not null, "send_at" timestamptz(3) null, "send_status" text not null default 'draft', "send_error" text null, "plan" int not null default 0, "version" int not null default 1, "checked_at" timestamptz(3) null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, primary key ("id"))`,
  `create index "drafts_inbox_id_id_index" on "drafts" ("inbox_id", "id")`,
  `create index "drafts_scheduled_index" on "drafts" ("send_at") where "send_status" = 'scheduled'`,
  `create table "api_keys" ("id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" null, "inbox_id" text collate "C" null, "name" text not null, "token_hash" bytea not null, "last_four" text not null, "permissions" text[] not null, "expires_at" timestamptz(3) null, "revoked_at" timestamptz(3) null, "last_used_at" timestamptz(3) null, "created_at" timestamptz(3) not null, primary key ("id"))`,
  `alter table "api_keys" add constraint "api_keys_token_hash_unique" unique ("token_hash")`,
  `create index "api_keys_org_id_id_index" on "api_keys" ("org_id", "id")`,
  `create table "outbox" ("id" bigserial primary key, "org_id" text collate "C" not null, "command" jsonb not null, "available_at" timestamptz(3) not null, "attempts" int not null default 0, "last_error" text null, "dead_at" timestamptz(3) null, "created_at" timestamptz(3) not null)`,
  `create index "outbox_due_index" on "outbox" ("available_at") where "dead_at" is null`,
  `create table "rate_buckets" ("id" text not null, "tokens" double precision not null, "refilled_at" timestamptz(3) not null, primary key ("id"))`,
  `create table "inbound_receipts" ("id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" not null, "inbox_id" text collate "C" not null, "kind" text not null, "message_id" text collate "C" not null, "recipient_position" smallint null, "raw_key" text not null, "size_bytes" int not null, "sha256" bytea not null, "mail_from" text not null, "rcpt_to" text not null, "client_ip" text not null, "helo" text null, "tls" boolean not null default false, "status" text not null default 'received', "checked_at" timestamptz(3) null, "received_at" timestamptz(3) not null, "processed_at" timestamptz(3) null, primary key ("id"))`,
  `create index "inbound_receipts_unprocessed_index" on "inbound_receipts" ("received_at") where "status" = 'received'`,
  `create table "threads" ("id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" not null, "inbox_id" text collate "C" not null, "subject" text not null, "base_subject" text not null, "preview" text not null default '', "labels" text[] not null default '{}', "participants" text[] not null default '{}', "message_count" int not null default 0, "last_message_id" text collate "C" null, "last_message_at" timestamptz(3) not null, "last_inbound_at" timestamptz(3) null, "last_outbound_at" timestamptz(3) null, "has_attachments" boolean not null default false, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, primary key ("id"))`,
  `create index "threads_inbox_id_last_message_at_id_index" on "threads" ("inbox_id", "last_message_at", "id")`,
  `create index "threads_env_id_last_message_at_id_index" on "threads" ("env_id", "last_message_at", "id")`,
  `create index "threads_inbox_id_base_subject_last_message_at_index" on "threads" ("inbox_id", "base_subject", "last_message_at")`,
  `create table "messages" ("id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" not null, "inbox_id" text collate "C" not null, "thread_id" text collate "C" not null, "direction" text not null, "status" text not null, "status_detail" text null, "from_email" text not null, "from_name" text null, "to" jsonb not null, "cc" jsonb not null, "bcc" jsonb not null, "reply_to" jsonb not null, "subject" text not null, "preview" text not null default '', "text_body" text null, "html_body" text null, "extracted_text" text null, "labels" text[] not null default '{}', "has_attachments" boolean not null default false, "rfc_message_id" text null, "in_reply_to" text null, "reference_ids" text[] not null default '{}', "provider_message_id" text null, "size_bytes" int not null default 0, "headers" jsonb not null, "authentication" jsonb null, "spam" jsonb null, "automated" boolean not null default false, "parse_error" text null, "raw_key" text null, "tracked" boolean not null default false, "checked_at" timestamptz(3) null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, "queued_at" timestamptz(3) null, "sent_at" timestamptz(3) null, "delivered_at" timestamptz(3) null, "bounced_at" timestamptz(3) null, "complained_at" timestamptz(3) null, "received_at" timestamptz(3) null, primary key ("id"))`,
  `create index "messages_inbox_id_id_index" on "messages" ("inbox_id", "id")`,
  `create index "messages_env_id_id_index" on "messages" ("env_id", "id")`,
  `create index "messages_thread_id_id_index" on "messages" ("thread_id", "id")`,
  `create index "messages_inbox_id_rfc_message_id_index" on "messages" ("inbox_id", "rfc_message_id")`,
  `create index "messages_unsettled_index" on "messages" ("updated_at") where "status" in ('queued', 'sending', 'deferred', 'needs_attention')`,
  `create table "send_attempts" ("message_id" text collate "C" not null, "position" smallint not null, "number" smallint not null, "org_id" text collate "C" not null, "state" text not null, "refused_scope" text null, "status_code" text null, "response" text null, "provider_message_id" text null, "reports_delivery" boolean not null default false, "simulated" jsonb null, "recorded" boolean not null default false, "started_at" timestamptz(3) not null, "finished_at" timestamptz(3) null, primary key ("message_id", "position", "number"))`,
  `create table "message_recipients" ("message_id" text collate "C" not null, "position" smallint not null, "org_id" text collate "C" not null, "field" text not null, "email" text not null, "status" text not null default 'pending', "status_code" text null, "diagnostic_code" text null, "sent_at" timestamptz(3) null, "updated_at" timestamptz(3) not null, primary key ("message_id", "position"))`,
  `create table "attachments" ("id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" not null, "inbox_id" text collate "C" not null, "message_id" text collate "C" not null, "position" smallint not null, "filename" text not null, "content_type" text not null, "size_bytes" int not null, "sha256" bytea not null, "storage_key" text not null, "content_id" text null, "disposition" text not null, "created_at" timestamptz(3) not null, primary key ("id"))`,
  `create index "attachments_message_id_position_index" on "attachments" ("message_id", "position")`,
  `create table "users" ("id" text collate "C" not null, "email" text not null, "name" text null, "password_hash" text null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, primary key ("id"))`,
  `alter table "users" add constraint "users_email_unique" unique ("email")`,
  `create table "members" ("org_id" text collate "C" not null, "user_id" text collate "C" not null, "role" text not null, "created_at" timestamptz(3) not null, primary key ("org_id", "user_id"))`,
  `create table "webhook_endpoints" ("id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" not null, "url" text not null, "events" text[] not null, "description" text null, "inbox_ids" text[] null, "secret" bytea not null, "disabled" boolean not null default false, "disabled_reason" text null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, "deleted_at" timestamptz(3) null, primary key ("id"))`,
  `create index "webhook_endpoints_env_id_id_index" on "webhook_endpoints" ("env_id", "id")`,
  `create table "webhook_deliveries" ("id" text collate "C" not null, "org_id" text collate "C" not null, "endpoint_id" text collate "C" not null, "event_id" text collate "C" not null, "status" text not null, "attempts" int not null default 0, "attempts_before" int not null default 0, "episode" int not null default 1, "next_attempt_at" timestamptz(3) null, "last_status_code" int null, "last_error" text null, "checked_at" timestamptz(3) null, "created_at" timestamptz(3) not null, "completed_at" timestamptz(3) null, primary key ("id"))`,
  `create index "webhook_deliveries_endpoint_id_id_index" on "webhook_deliveries" ("endpoint_id", "id")`,
  `create index "webhook_deliveries_event_id_index" on "webhook_deliveries" ("event_id")`,
  `create index "webhook_deliveries_held_index" on "webhook_deliveries" ("endpoint_id") where "status" = 'held'`,
  `create index "webhook_deliveries_pending_index" on "webhook_deliveries" ("next_attempt_at") where "status" = 'pending'`,
  `create table "webhook_delivery_attempts" ("delivery_id" text collate "C" not null, "number" int not null, "org_id" text collate "C" not null, "started_at" timestamptz(3) not null, "finished_at" timestamptz(3) null, "duration_ms" int null, "status_code" int null, "response_body" text null, "error" text null, primary key ("delivery_id", "number"))`,
  `alter table "environments" add constraint "environments_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "inboxes" add constraint "inboxes_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "inboxes" add constraint "inboxes_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade`,
  `alter table "events" add constraint "events_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "events" add constraint "events_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade`,
  `alter table "drafts" add constraint "drafts_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "drafts" add constraint "drafts_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade`,
  `alter table "drafts" add constraint "drafts_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade`,
  `alter table "api_keys" add constraint "api_keys_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "api_keys" add constraint "api_keys_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade`,
  `alter table "api_keys" add constraint "api_keys_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade`,
  `alter table "inbound_receipts" add constraint "inbound_receipts_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "threads" add constraint "threads_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "threads" add constraint "threads_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade`,
  `alter table "threads" add constraint "threads_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade`,
  `alter table "messages" add constraint "messages_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "messages" add constraint "messages_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade`,
  `alter table "messages" add constraint "messages_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade`,
  `alter table "messages" add constraint "messages_thread_id_foreign" foreign key ("thread_id") references "threads" ("id") on delete cascade`,
  `alter table "send_attempts" add constraint "send_attempts_message_id_foreign" foreign key ("message_id") references "messages" ("id") on delete cascade`,
  `alter table "message_recipients" add constraint "message_recipients_message_id_foreign" foreign key ("message_id") references "messages" ("id") on delete cascade`,
  `alter table "message_recipients" add constraint "message_recipients_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "attachments" add constraint "attachments_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "attachments" add constraint "attachments_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade`,
  `alter table "attachments" add constraint "attachments_message_id_foreign" foreign key ("message_id") references "messages" ("id") on delete cascade`,
  `alter table "members" add constraint "members_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on update cascade on delete cascade`,
  `alter table "members" add constraint "members_user_id_foreign" foreign key ("user_id") references "users" ("id") on update cascade on delete cascade`,
  `alter table "webhook_endpoints" add constraint "webhook_endpoints_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "webhook_endpoints" add constraint "webhook_endpoints_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade`,
  `alter table "webhook_deliveries" add constraint "webhook_deliveries_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade`,
  `alter table "webhook_deliveries" add constraint "webhook_deliveries_endpoint_id_foreign" foreign key ("endpoint_id") references "webhook_endpoints" ("id") on delete cascade`,
  `alter table "webhook_deliveries" add constraint "webhook_deliveries_event_id_foreign" foreign key ("event_id") references "events" ("id") on delete cascade`,
  `alter table "webhook_delivery_attempts" add constraint "webhook_delivery_attempts_delivery_id_foreign" foreign key ("delivery_id") references "webhook_deliveries" ("id") on delete cascade`,
  `alter table "address_claims" enable row level security`,
  `create policy "tenant" on "address_claims" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "address_claims" to "agent_email_worker" using (true) with check (true)`,
  `create policy "lookup" on "address_claims" to "agent_email_lookup" using (true) with check (true)`,
  `alter table "idempotency_keys" enable row level security`,
  `create policy "tenant" on "idempotency_keys" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "idempotency_keys" to "agent_email_worker" using (true) with check (true)`,
  `alter table "organizations" enable row level security`,
  `create policy "tenant" on "organizations" to "agent_email_api" using (id = nullif(current_setting('app.org_id', true), '')) with check (id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "organizations" to "agent_email_worker" using (true) with check (true)`,
  `create policy "lookup" on "organizations" to "agent_email_lookup" using (true) with check (true)`,
  `alter table "environments" enable row level security`,
  `create policy "tenant" on "environments" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "environments" to "agent_email_worker" using (true) with check (true)`,
  `create policy "lookup" on "environments" to "agent_email_lookup" using (true) with check (true)`,
  `alter table "inboxes" enable row level security`,
  `create policy "tenant" on "inboxes" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "inboxes" to "agent_email_worker" using (true) with check (true)`,
  `alter table "events" enable row level security`,
  `create policy "tenant" on "events" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "events" to "agent_email_worker" using (true) with check (true)`,
  `alter table "drafts" enable row level security`,
  `create policy "tenant" on "drafts" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "drafts" to "agent_email_worker" using (true) with check (true)`,
  `alter table "api_keys" enable row level security`,
  `create policy "tenant" on "api_keys" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "api_keys" to "agent_email_worker" using (true) with check (true)`,
  `create policy "lookup" on "api_keys" to "agent_email_lookup" using (true) with check (true)`,
  `alter table "outbox" enable row level security`,
  `create policy "tenant" on "outbox" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "outbox" to "agent_email_worker" using (true) with check (true)`,
  `alter table "inbound_receipts" enable row level security`,
  `create policy "tenant" on "inbound_receipts" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "inbound_receipts" to "agent_email_worker" using (true) with check (true)`,
  `alter table "threads" enable row level security`,
  `create policy "tenant" on "threads" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "threads" to "agent_email_worker" using (true) with check (true)`,
  `alter table "messages" enable row level security`,
  `create policy "tenant" on "messages" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "messages" to "agent_email_worker" using (true) with check (true)`,
  `alter table "send_attempts" enable row level security`,
  `create policy "tenant" on "send_attempts" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "send_attempts" to "agent_email_worker" using (true) with check (true)`,
  `alter table "message_recipients" enable row level security`,
  `create policy "tenant" on "message_recipients" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "message_recipients" to "agent_email_worker" using (true) with check (true)`,
  `alter table "attachments" enable row level security`,
  `create policy "tenant" on "attachments" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "attachments" to "agent_email_worker" using (true) with check (true)`,
  `alter table "members" enable row level security`,
  `create policy "tenant" on "members" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "members" to "agent_email_worker" using (true) with check (true)`,
  `alter table "webhook_endpoints" enable row level security`,
  `create policy "tenant" on "webhook_endpoints" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "webhook_endpoints" to "agent_email_worker" using (true) with check (true)`,
  `alter table "webhook_deliveries" enable row level security`,
  `create policy "tenant" on "webhook_deliveries" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "webhook_deliveries" to "agent_email_worker" using (true) with check (true)`,
  `alter table "webhook_delivery_attempts" enable row level security`,
  `create policy "tenant" on "webhook_delivery_attempts" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''))`,
  `create policy "worker" on "webhook_delivery_attempts" to "agent_email_worker" using (true) with check (true)`,
];

/** Tables the API reads and writes under row-level security. */
const API_TABLES = [
  'inboxes',
  'api_keys',
  'threads',
  'messages',
  'message_recipients',
  'attachments',
  'drafts',
  'events',
  'webhook_endpoints',
  'webhook_deliveries',
  'outbox',
  'idempotency_keys',
  'rate_buckets',
];

const GRANTS = [
  `grant usage on schema public to agent_email_api, agent_email_worker, agent_email_lookup`,
  `grant select, insert, update, delete on all tables in schema public to agent_email_worker`,
  `grant usage, select on all sequences in schema public to agent_email_worker, agent_email_api`,
  `grant select, insert, update, delete on ${API_TABLES.map((table) => `"${table}"`).join(', ')} to agent_email_api`,
  `grant select, update on organizations, environments, address_claims to agent_email_api`,
  `grant select on members, webhook_delivery_attempts, send_attempts to agent_email_api`,
  `grant select on api_keys, organizations, environments to agent_email_lookup`,
  `grant select, insert, update on address_claims to agent_email_lookup`,
];

const FUNCTIONS = [
  // The one look-up that happens before a tenant is known. An environment that is not the organization's is no row.
  `create function find_api_key(presented_hash bytea, requested_env text)
   returns table (
     key_id text, org_id text, org_status text, env_id text, env_kind text, env_status text, env_bound boolean,
     inbox_id text, permissions text[], expires_at timestamptz, last_used_at timestamptz
   )
   language sql stable security definer set search_path = public, pg_temp as $$
     select k.id, o.id, o.status, e.id, e.kind, e.status, k.env_id is not null,
            k.inbox_id, k.permissions, k.expires_at, k.last_used_at
     from api_keys k
     join organizations o on o.id = k.org_id
     left join environments e on e.org_id = k.org_id
       and (k.env_id is null or e.id = k.env_id)
       and case when requested_env is not null then e.id = requested_env
                when k.env_id is not null then true
                else e.kind = 'production' and e.name = 'production' end
     where k.token_hash = presented_hash and k.revoked_at is null
   $$`,
  // Addresses are unique service-wide, and a released one stays with its organization for 90 days.
  `create function claim_address(wanted_email text, claiming_org text, claiming_inbox text) returns boolean
   language plpgsql security definer set search_path = public, pg_temp as $$
   begin
     if claiming_org is distinct from nullif(current_setting('app.org_id', true), '') then
       raise exception 'claim_address is for the organization of the transaction' using errcode = 'insufficient_privilege';
     end if;
     insert into address_claims (email, org_id, inbox_id) values (wanted_email, claiming_org, claiming_inbox)
     on conflict (email) do update set org_id = excluded.org_id, inbox_id = excluded.inbox_id, released_at = null
       where address_claims.released_at is not null
         and (address_claims.org_id = excluded.org_id or address_claims.released_at < now() - interval '90 days');
     return found;
   end $$`,
  // Takes up to "wanted" tokens of a bucket that refills by the second; answers how many it got.
  `create function lease_rate_tokens(bucket text, capacity double precision, refill double precision, wanted integer)
   returns integer language plpgsql set search_path = public, pg_temp as $$
   declare available double precision; granted integer;
   begin
     insert into rate_buckets (id, tokens, refilled_at) values (bucket, capacity, clock_timestamp())
     on conflict (id) do nothing;
     select least(capacity, tokens + refill * greatest(0, extract(epoch from clock_timestamp() - refilled_at)))
       into available from rate_buckets where id = bucket for update;
     granted := greatest(0, least(wanted, floor(available)::integer));
     update rate_buckets set tokens = available - granted, refilled_at = clock_timestamp() where id = bucket;
     return granted;
   end $$`,
  `grant agent_email_lookup to current_user`,
  `grant create on schema public to agent_email_lookup`,
  `alter function find_api_key(bytea, text) owner to agent_email_lookup`,
  `alter function claim_address(text, text, text) owner to agent_email_lookup`,
  `revoke create on schema public from agent_email_lookup`,
  `revoke all on function find_api_key(bytea, text), claim_address(text, text, text) from public`,
  `grant execute on function find_api_key(bytea, text), claim_address(text, text, text) to agent_email_api, agent_email_worker`,
];
