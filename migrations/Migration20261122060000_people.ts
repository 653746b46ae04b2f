import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

// Roles belong to the cluster and may exist already, for another database. The API switches to the role; it must not have
// its privileges otherwise.
const ROLE = `do $$ begin
    if not exists (select from pg_roles where rolname = 'agent_email_people') then create role "agent_email_people" nologin; end if;
  end $$;
  grant agent_email_people to agent_email_api with inherit false, set true`;

const GRANTS = [
  `grant usage on schema public to agent_email_people`,
  `grant select, insert, update, delete on sessions, mfa_enrollments, mfa_challenges, organization_policies,
     audit_entries to agent_email_worker`,
  `grant select, insert on audit_entries to agent_email_api;
   grant select, insert, update on organization_policies to agent_email_api;
   grant select, update, delete on members to agent_email_api;
   grant select (id, email, name, avatar_url) on users to agent_email_api`,
  `grant select, insert, update on users, sessions to agent_email_people;
   grant select, insert, update, delete on mfa_enrollments, mfa_challenges to agent_email_people;
   grant select, insert, update, delete on members to agent_email_people;
   grant select, insert, update on organizations to agent_email_people;
   grant select, insert on environments, api_keys, notifications, outbox to agent_email_people;
   grant select on organization_policies to agent_email_people;
   grant insert on audit_entries to agent_email_people;
   grant usage, select on sequence outbox_id_seq to agent_email_people`,
  `grant select on users, sessions, members, organization_policies to agent_email_lookup`,
];

/** Both run before the tenant is known, so they see the rows of every tenant. */
const FUNCTIONS = [
  `drop function if exists find_api_key(bytea, text)`,
  replaceSqlFunction('find_api_key'),
  replaceSqlFunction('find_session'),
  `grant create on schema public to agent_email_lookup;
   alter function find_api_key owner to agent_email_lookup;
   alter function find_session owner to agent_email_lookup;
   revoke create on schema public from agent_email_lookup;
   revoke all on function find_api_key, find_session from public;
   grant execute on function find_api_key, find_session
     to agent_email_api, agent_email_worker`,
];

/** People: sessions, policies of organizations, the audit log, and the role that works with them. */

export class Migration20261122060000_people extends Migration {
  override name = 'Migration20261122060000_people';

  override up(): void {
    this.addSql(ROLE);
    this.addSql(
      `create table "audit_entries" ("id" text collate "C" not null, "org_id" text collate "C" not null, "action" text not null, "actor_kind" text not null, "actor_id" text not null, "credential_id" text collate "C" null, "resource_type" text not null, "resource_id" text not null, "reason" text null, "details" jsonb not null, "ip" text null, "request_id" text null, "created_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(`create index "audit_entries_org_id_id_index" on "audit_entries" ("org_id", "id");`);
    this.addSql(
      `create index "audit_entries_org_id_actor_id_id_index" on "audit_entries" ("org_id", "actor_id", "id");`,
    );
    this.addSql(
      `create index "audit_entries_org_id_resource_id_id_index" on "audit_entries" ("org_id", "resource_id", "id");`,
    );

    this.addSql(
      `create table "organization_policies" ("org_id" text collate "C" not null, "require_mfa" boolean not null default false, "enforce_sso" boolean not null default false, "sso_satisfies_mfa" boolean not null default true, "session_max_age_hours" int null, "allowed_cidrs" text[] not null default '{}', "max_recipients_per_message" int null, "allowed_recipient_domains" text[] not null default '{}', "blocked_recipient_domains" text[] not null default '{}', "daily_send_cap_per_inbox" int null, "require_send_approval" text not null default 'off', "auto_submitted_header" boolean not null default true, "updated_at" timestamptz(3) not null, primary key ("org_id"));`,
    );

    this.addSql(
      `create table "sessions" ("id" text collate "C" not null, "user_id" text collate "C" not null, "token_hash" bytea not null, "kind" text not null, "method" text not null, "factors" text[] not null, "sso_configuration_id" text collate "C" null, "authenticated_at" timestamptz(3) not null, "ip" text not null, "user_agent" text null, "last_seen_at" timestamptz(3) not null, "expires_at" timestamptz(3) not null, "revoked_at" timestamptz(3) null, "created_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(`alter table "sessions" add constraint "sessions_token_hash_unique" unique ("token_hash");`);
    this.addSql(`create index "sessions_user_id_id_index" on "sessions" ("user_id", "id");`);
    this.addSql(`create index "sessions_expires_at_index" on "sessions" ("expires_at");`);

    this.addSql(`alter table "organizations" add "deleted_at" timestamptz(3) null;`);
    this.addSql(
      `create policy "people" on "organizations" to "agent_email_people" using (true) with check (true);`,
    );

    this.addSql(`alter table "notifications" add "sealed_params" bytea null;`);
    this.addSql(`alter table "notifications" alter column "org_id" drop not null;`);
    this.addSql(
      `create policy "people" on "notifications" to "agent_email_people" using (true) with check (true);`,
    );

    this.addSql(
      `create policy "people" on "environments" to "agent_email_people" using (true) with check (true);`,
    );

    this.addSql(`alter table "api_keys" add "allowed_cidrs" text[] not null default '{}';`);
    this.addSql(
      `create policy "people" on "api_keys" to "agent_email_people" using (true) with check (true);`,
    );

    this.addSql(`create policy "people" on "outbox" to "agent_email_people" using (true) with check (true);`);

    this.addSql(
      `alter table "users" add "email_verified_at" timestamptz(3) null, add "avatar_url" text null, add "status" text not null default 'active', add "deleted_at" timestamptz(3) null;`,
    );
    this.addSql(
      `alter table "users" add constraint "users_status" check (status = ANY (ARRAY['active'::text, 'suspended'::text]));`,
    );

    this.addSql(`create index "members_user_id_index" on "members" ("user_id");`);
    this.addSql(
      `alter table "members" add constraint "members_role" check (role = ANY (ARRAY['owner'::text, 'admin'::text, 'developer'::text, 'viewer'::text]));`,
    );
    this.addSql(
      `create policy "lookup" on "members" to "agent_email_lookup" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "people" on "members" to "agent_email_people" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "audit_entries" add constraint "audit_entries_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "audit_entries" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "audit_entries" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "audit_entries" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "people" on "audit_entries" to "agent_email_people" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "organization_policies" add constraint "organization_policies_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on update cascade on delete cascade;`,
    );
    this.addSql(
      `alter table "organization_policies" add constraint "organization_policies_require_send_approval" check (require_send_approval = ANY (ARRAY['off'::text, 'all'::text, 'external'::text]));`,
    );
    this.addSql(`alter table "organization_policies" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "organization_policies" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "organization_policies" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "lookup" on "organization_policies" to "agent_email_lookup" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "people" on "organization_policies" to "agent_email_people" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "sessions" add constraint "sessions_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "sessions" add constraint "sessions_kind" check (kind = ANY (ARRAY['full'::text, 'enroll'::text]));`,
    );

    this.addSql(
      `create table "mfa_enrollments" ("id" text collate "C" not null, "user_id" text collate "C" not null, "type" text not null, "name" text not null, "secret" bytea null, "last_step" int null, "credential_id" bytea null, "public_key" bytea null, "signature_counter" bigint null, "transports" text[] not null default '{}', "rp_id" text null, "confirmed_at" timestamptz(3) null, "last_used_at" timestamptz(3) null, "created_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(
      `alter table "mfa_enrollments" add constraint "mfa_enrollments_credential_id_unique" unique ("credential_id");`,
    );
    this.addSql(`create index "mfa_enrollments_user_id_id_index" on "mfa_enrollments" ("user_id", "id");`);

    this.addSql(
      `create table "mfa_challenges" ("token_hash" bytea not null, "user_id" text collate "C" not null, "method" text not null, "sso_configuration_id" text collate "C" null, "failures" smallint not null default 0, "webauthn_challenge" text null, "expires_at" timestamptz(3) not null, "used_at" timestamptz(3) null, "created_at" timestamptz(3) not null, primary key ("token_hash"));`,
    );
    this.addSql(`create index "mfa_challenges_user_id_index" on "mfa_challenges" ("user_id");`);
    this.addSql(`create index "mfa_challenges_expires_at_index" on "mfa_challenges" ("expires_at");`);

    this.addSql(
      `alter table "mfa_enrollments" add constraint "mfa_enrollments_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "mfa_enrollments" add constraint "mfa_enrollments_type" check (type = ANY (ARRAY['totp'::text, 'webauthn'::text]));`,
    );

    this.addSql(
      `alter table "mfa_challenges" add constraint "mfa_challenges_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;`,
    );
    for (const statements of [...GRANTS, ...FUNCTIONS]) this.addSql(statements);
  }
}
