import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

const GRANTS = [
  `grant select, insert, update, delete on sso_configurations to agent_email_api;
   grant select on sso_attempts to agent_email_api;
   grant insert on notifications to agent_email_api;
   grant select (id, dedupe_key) on notifications to agent_email_api`,
  `grant select, insert, update, delete on sso_configurations, sso_transactions, sso_identities, sso_assertions,
     sso_attempts to agent_email_people, agent_email_worker`,
  `grant select (org_id, domain_name, verification_status) on domains to agent_email_people;
   grant select (org_id, action, resource_id) on audit_entries to agent_email_people;
   grant select on sso_configurations to agent_email_lookup`,
];

/** Reports whether the organization's active configuration made the session. */
const FUNCTION = [
  `drop function find_session(bytea, text, text, text)`,
  replaceSqlFunction('find_session'),
  `grant create on schema public to agent_email_lookup;
   alter function find_session(bytea, text, text, text) owner to agent_email_lookup;
   revoke create on schema public from agent_email_lookup;
   revoke all on function find_session(bytea, text, text, text) from public;
   grant execute on function find_session(bytea, text, text, text) to agent_email_api, agent_email_worker`,
];

/** Single sign-on: an organization's configurations, and the logins through them. */

export class Migration20261122093412_sso extends Migration {
  override name = 'Migration20261122093412_sso';

  override up(): void {
    this.addSql(
      `create table "sso_configurations" ("id" text collate "C" not null, "org_id" text collate "C" not null, "type" text not null, "status" text not null default 'draft', "name" text not null, "version" int not null default 1, "replaces_id" text collate "C" null, "domains" text[] not null, "default_role" text not null, "issuer" text null, "client_id" text null, "client_secret" bytea null, "idp_metadata_url" text null, "idp_metadata_xml" text null, "allow_idp_initiated" boolean not null default false, "metadata_fetched_at" timestamptz(3) null, "metadata_due_at" timestamptz(3) null, "certificate_expires_at" timestamptz(3) null, "certificate_warned_days" smallint null, "tested_at" timestamptz(3) null, "activated_at" timestamptz(3) null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(
      `create index "sso_configurations_org_id_id_index" on "sso_configurations" ("org_id", "id");`,
    );
    this.addSql(
      `create unique index "sso_configurations_active_unique" on "sso_configurations" ("org_id") where "status" = 'active';`,
    );
    this.addSql(
      `create unique index "sso_configurations_replaces_unique" on "sso_configurations" ("replaces_id");`,
    );

    this.addSql(
      `create table "sso_attempts" ("id" text collate "C" not null, "org_id" text collate "C" not null, "configuration_id" text collate "C" not null, "purpose" text not null, "succeeded" boolean not null, "checks" jsonb not null, "created_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(
      `create index "sso_attempts_configuration_id_id_index" on "sso_attempts" ("configuration_id", "id");`,
    );
    this.addSql(`create index "sso_attempts_created_at_index" on "sso_attempts" ("created_at");`);

    this.addSql(
      `create table "sso_assertions" ("configuration_id" text collate "C" not null, "assertion_hash" bytea not null, "org_id" text collate "C" not null, "expires_at" timestamptz(3) not null, primary key ("configuration_id", "assertion_hash"));`,
    );
    this.addSql(`create index "sso_assertions_expires_at_index" on "sso_assertions" ("expires_at");`);

    this.addSql(
      `create table "sso_transactions" ("token_hash" bytea not null, "org_id" text collate "C" not null, "configuration_id" text collate "C" not null, "configuration_version" int not null, "purpose" text not null, "browser_hash" bytea not null, "secrets" bytea null, "redirect_to" text not null, "is_fresh" boolean not null default false, "user_id" text collate "C" null, "claims" jsonb null, "expires_at" timestamptz(3) not null, "used_at" timestamptz(3) null, "created_at" timestamptz(3) not null, primary key ("token_hash"));`,
    );
    this.addSql(`create index "sso_transactions_expires_at_index" on "sso_transactions" ("expires_at");`);
    this.addSql(
      `create index "sso_transactions_configuration_id_index" on "sso_transactions" ("configuration_id");`,
    );

    this.addSql(
      `create table "sso_identities" ("configuration_id" text collate "C" not null, "issuer" text not null, "subject" text not null, "org_id" text collate "C" not null, "user_id" text collate "C" not null, "email" text not null, "last_login_at" timestamptz(3) not null, "created_at" timestamptz(3) not null, primary key ("configuration_id", "issuer", "subject"));`,
    );
    this.addSql(`create index "sso_identities_user_id_index" on "sso_identities" ("user_id");`);

    this.addSql(
      `create policy "people" on "domains" to "agent_email_people" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "sso_configurations" add constraint "sso_configurations_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "sso_configurations" add constraint "sso_configurations_type" check (type = ANY (ARRAY['oidc'::text, 'saml'::text]));`,
    );
    this.addSql(
      `alter table "sso_configurations" add constraint "sso_configurations_status" check (status = ANY (ARRAY['draft'::text, 'tested'::text, 'active'::text, 'disabled'::text]));`,
    );
    this.addSql(
      `alter table "sso_configurations" add constraint "sso_configurations_default_role" check (default_role = ANY (ARRAY['admin'::text, 'developer'::text, 'viewer'::text]));`,
    );
    this.addSql(`alter table "sso_configurations" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "sso_configurations" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "sso_configurations" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "lookup" on "sso_configurations" to "agent_email_lookup" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "people" on "sso_configurations" to "agent_email_people" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "sso_attempts" add constraint "sso_attempts_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "sso_attempts" add constraint "sso_attempts_configuration_id_foreign" foreign key ("configuration_id") references "sso_configurations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "sso_attempts" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "sso_attempts" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "sso_attempts" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "people" on "sso_attempts" to "agent_email_people" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "sso_assertions" add constraint "sso_assertions_configuration_id_foreign" foreign key ("configuration_id") references "sso_configurations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "sso_assertions" add constraint "sso_assertions_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "sso_assertions" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "sso_assertions" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "sso_assertions" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "people" on "sso_assertions" to "agent_email_people" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "sso_transactions" add constraint "sso_transactions_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "sso_transactions" add constraint "sso_transactions_configuration_id_foreign" foreign key ("configuration_id") references "sso_configurations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "sso_transactions" add constraint "sso_transactions_purpose" check (purpose = ANY (ARRAY['login'::text, 'test'::text, 'link'::text, 'confirm'::text]));`,
    );
    this.addSql(`alter table "sso_transactions" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "sso_transactions" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "sso_transactions" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "people" on "sso_transactions" to "agent_email_people" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "sso_identities" add constraint "sso_identities_configuration_id_foreign" foreign key ("configuration_id") references "sso_configurations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "sso_identities" add constraint "sso_identities_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "sso_identities" add constraint "sso_identities_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "sso_identities" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "sso_identities" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "sso_identities" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "people" on "sso_identities" to "agent_email_people" using (true) with check (true);`,
    );
    for (const statement of [...GRANTS, ...FUNCTION]) this.addSql(statement);
  }
}
