import { Migration } from '@mikro-orm/migrations';

/** Invitations to organizations. */
export class Migration20261122090339_invitations extends Migration {
  override name = 'Migration20261122090339_invitations';

  override up(): void {
    this.addSql(
      `create table "invitations" ("id" text collate "C" not null, "org_id" text collate "C" not null, "email" text not null, "role" text not null, "token_hash" bytea not null, "invited_by_user_id" text collate "C" null, "invited_by_key_id" text collate "C" null, "expires_at" timestamptz(3) not null, "accepted_at" timestamptz(3) null, "accepted_by_user_id" text collate "C" null, "revoked_at" timestamptz(3) null, "created_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(
      `alter table "invitations" add constraint "invitations_token_hash_unique" unique ("token_hash");`,
    );
    this.addSql(`create index "invitations_org_id_id_index" on "invitations" ("org_id", "id");`);
    this.addSql(`create index "invitations_org_id_email_index" on "invitations" ("org_id", "email");`);
    this.addSql(
      `alter table "invitations" add constraint "invitations_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "invitations" add constraint "invitations_role" check (role = ANY (ARRAY['owner'::text, 'admin'::text, 'developer'::text, 'viewer'::text]));`,
    );
    this.addSql(`alter table "invitations" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "invitations" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "invitations" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "people" on "invitations" to "agent_email_people" using (true) with check (true);`,
    );
    // The API creates emails in the transaction of the invitation; it reads none.
    this.addSql(`grant select, insert, update on invitations to agent_email_api;
      grant select, update on invitations to agent_email_people;
      grant select, insert, update, delete on invitations to agent_email_worker;
      grant insert, select (id, dedupe_key) on notifications to agent_email_api`);
  }
}
