import { Migration } from '@mikro-orm/migrations';

/** Slots of endpoints, what is known of their health, and the mails of the service itself. */
export class Migration20261121080511_webhook_fairness_and_notifications extends Migration {
  override name = 'Migration20261121080511_webhook_fairness_and_notifications';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "notifications" ("id" text collate "C" not null, "org_id" text collate "C" not null, "user_id" text collate "C" null, "email" text not null, "template" text not null, "params" jsonb not null, "dedupe_key" text not null, "status" text not null default 'pending', "attempts" int not null default 0, "next_attempt_at" timestamptz(3) null, "last_error" text null, "checked_at" timestamptz(3) null, "created_at" timestamptz(3) not null, "sent_at" timestamptz(3) null, primary key ("id"));`,
    );
    this.addSql(
      `alter table "notifications" add constraint "notifications_dedupe_key_unique" unique ("dedupe_key");`,
    );
    this.addSql(`create index "notifications_org_id_id_index" on "notifications" ("org_id", "id");`);
    this.addSql(
      `create index "notifications_open_index" on "notifications" ("next_attempt_at") where "status" in ('pending', 'sending');`,
    );

    this.addSql(
      `create table "webhook_slots" ("endpoint_id" text collate "C" not null, "slot" smallint not null, "org_id" text collate "C" not null, "leased_until" timestamptz(3) not null, "delivery_id" text collate "C" null, primary key ("endpoint_id", "slot"));`,
    );

    this.addSql(
      `alter table "webhook_endpoints" add "failing_since" timestamptz(3) null, add "failures_in_row" int not null default 0;`,
    );

    this.addSql(
      `alter table "notifications" add constraint "notifications_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "notifications" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "notifications" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "notifications" to "agent_email_worker" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "webhook_slots" add constraint "webhook_slots_endpoint_id_foreign" foreign key ("endpoint_id") references "webhook_endpoints" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "webhook_slots" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "webhook_slots" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "webhook_slots" to "agent_email_worker" using (true) with check (true);`,
    );

    this.addSql(
      `grant select, insert, update, delete on webhook_slots, notifications to agent_email_worker;`,
    );
  }
}
