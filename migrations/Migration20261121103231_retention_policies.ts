import { Migration } from '@mikro-orm/migrations';

export class Migration20261121103231_retention_policies extends Migration {
  override name = 'Migration20261121103231_retention_policies';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "retention_policies" ("org_id" text collate "C" not null, "retention_days" int not null default 0, "applied_days" int not null default 0, "applied_since" timestamptz(3) null, "steps" jsonb not null, "postponed_until" timestamptz(3) null, "resume_warned_at" timestamptz(3) null, "reminded_at" timestamptz(3) null, "version" int not null default 0, "changed_at" timestamptz(3) not null, "created_at" timestamptz(3) not null, primary key ("org_id"));`,
    );

    this.addSql(
      `alter table "retention_policies" add constraint "retention_policies_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on update cascade on delete cascade;`,
    );
    this.addSql(`alter table "retention_policies" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "retention_policies" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "retention_policies" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(`grant select, insert, update, delete on retention_policies to agent_email_worker;`);
    this.addSql(`grant select, insert, update on retention_policies to agent_email_api;`);
    // Whoever may manage keys may grant what it has itself; without this nobody could grant the new permission.
    this.addSql(
      `update api_keys set permissions = permissions || '{retention:manage}'::text[]
       where 'keys:manage' = any(permissions) and not 'retention:manage' = any(permissions);`,
    );
  }
}
