import { Migration } from '@mikro-orm/migrations';

export class Migration20261123185444_injection_alarms extends Migration {
  override name = 'Migration20261123185444_injection_alarms';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "injection_alarms" ("message_id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" not null, "inbox_id" text collate "C" not null, "thread_id" text collate "C" not null, "addresses" text[] null, "ends_at" timestamptz(3) not null, primary key ("message_id"));`,
    );
    this.addSql(
      `create index "injection_alarms_org_id_inbox_id_ends_at_index" on "injection_alarms" ("org_id", "inbox_id", "ends_at");`,
    );
    this.addSql(`create index "injection_alarms_ends_at_index" on "injection_alarms" ("ends_at");`);

    this.addSql(`alter table "drafts" add "forwarded_message_id" text collate "C" null;`);

    this.addSql(`alter table "organization_policies" add "after_alarm" text not null default 'approval';`);
    this.addSql(
      `alter table "organization_policies" add constraint "organization_policies_after_alarm" check (after_alarm = ANY (ARRAY['approval'::text, 'none'::text]));`,
    );

    this.addSql(
      `alter table "messages" add "injection_dismissed_at" timestamptz(3) null, add "injection_dismissed_by" text collate "C" null;`,
    );

    this.addSql(
      `alter table "injection_alarms" add constraint "injection_alarms_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "injection_alarms" add constraint "injection_alarms_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "injection_alarms" add constraint "injection_alarms_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "injection_alarms" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "injection_alarms" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "injection_alarms" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `grant select, update, delete on "injection_alarms" to agent_email_api; grant select, insert, update, delete on "injection_alarms" to agent_email_worker;`,
    );
  }
}
