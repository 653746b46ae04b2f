import { Migration } from '@mikro-orm/migrations';

/** Policies for messages: the daily cap of inboxes, and what says that a message is automatic. */
export class Migration20261122084807_sending_policies extends Migration {
  override name = 'Migration20261122084807_sending_policies';

  override up(): void {
    this.addSql(
      `create table "inbox_daily_sends" ("inbox_id" text collate "C" not null, "org_id" text collate "C" not null, "day" date not null, "messages" int not null, primary key ("inbox_id"));`,
    );

    this.addSql(`alter table "messages" add "auto_submitted" text null;`);

    this.addSql(
      `alter table "inbox_daily_sends" add constraint "inbox_daily_sends_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on update cascade on delete cascade;`,
    );
    this.addSql(
      `alter table "inbox_daily_sends" add constraint "inbox_daily_sends_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "inbox_daily_sends" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "inbox_daily_sends" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "inbox_daily_sends" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `grant select, insert, update on "inbox_daily_sends" to agent_email_api;
       grant select, insert, update, delete on "inbox_daily_sends" to agent_email_worker`,
    );
    // Until now every message that was not submitted over SMTP was sent with this value.
    this.addSql(
      `update messages set auto_submitted = 'auto-generated'
       where direction = 'outbound' and status in ('queued', 'sending', 'deferred') and submitted_key is null`,
    );
  }
}
