import { Migration } from '@mikro-orm/migrations';

export class Migration20261121065500_inbox_credentials extends Migration {
  override name = 'Migration20261121065500_inbox_credentials';

  override up(): void {
    this.addSql(
      `create table "inbox_credentials" ("inbox_id" text collate "C" not null, "org_id" text collate "C" not null, "password_hash" bytea not null, "rotated_at" timestamptz(3) not null, primary key ("inbox_id"));`,
    );

    this.addSql(
      `alter table "inbox_credentials" add constraint "inbox_credentials_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on update cascade on delete cascade;`,
    );
    this.addSql(
      `alter table "inbox_credentials" add constraint "inbox_credentials_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "inbox_credentials" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "inbox_credentials" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "inbox_credentials" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `grant select, insert, update, delete on "inbox_credentials" to agent_email_api, agent_email_worker;`,
    );
  }
}
