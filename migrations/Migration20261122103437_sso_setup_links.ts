import { Migration } from '@mikro-orm/migrations';

/** Links by which somebody who is no member sets up single sign-on. */
export class Migration20261122103437_sso_setup_links extends Migration {
  override name = 'Migration20261122103437_sso_setup_links';

  override up(): void {
    this.addSql(
      `create table "sso_setup_links" ("id" text collate "C" not null, "org_id" text collate "C" not null, "email" text null, "token_hash" bytea not null, "created_by_user_id" text collate "C" null, "created_by_key_id" text collate "C" null, "configuration_id" text collate "C" null, "session_hash" bytea null, "expires_at" timestamptz(3) not null, "used_at" timestamptz(3) null, "revoked_at" timestamptz(3) null, "created_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(`create index "sso_setup_links_org_id_id_index" on "sso_setup_links" ("org_id", "id");`);
    this.addSql(
      `create index "sso_setup_links_configuration_id_index" on "sso_setup_links" ("configuration_id");`,
    );
    this.addSql(`create index "sso_setup_links_expires_at_index" on "sso_setup_links" ("expires_at");`);
    this.addSql(
      `alter table "sso_setup_links" add constraint "sso_setup_links_token_hash_unique" unique ("token_hash");`,
    );
    this.addSql(
      `alter table "sso_setup_links" add constraint "sso_setup_links_session_hash_unique" unique ("session_hash");`,
    );
    this.addSql(
      `alter table "sso_setup_links" add constraint "sso_setup_links_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "sso_setup_links" add constraint "sso_setup_links_configuration_id_foreign" foreign key ("configuration_id") references "sso_configurations" ("id") on delete set null;`,
    );
    this.addSql(`alter table "sso_setup_links" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "sso_setup_links" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "sso_setup_links" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "people" on "sso_setup_links" to "agent_email_people" using (true) with check (true);`,
    );
    this.addSql(`grant select, insert, update on sso_setup_links to agent_email_api;
      grant select, update on sso_setup_links to agent_email_people;
      grant select, insert, update, delete on sso_setup_links to agent_email_worker`);
  }
}
