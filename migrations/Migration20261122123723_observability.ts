import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/** Refused mail, the time of the last sweep, mail that can be parsed again, and indexes for what operators count. */
export class Migration20261122123723_observability extends Migration {
  override name = 'Migration20261122123723_observability';

  override up(): void {
    this.addSql(
      `create table "refusals" ("id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" null, "inbox_id" text collate "C" null, "direction" text not null, "stage" text not null, "reason" text not null, "response_code" smallint not null, "response" text not null, "sender" text null, "recipient" text null, "client_ip" text null, "count" int not null, "hour" timestamptz(3) not null, "fingerprint" bytea not null, "first_at" timestamptz(3) not null, "last_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(`create index "refusals_org_id_id_index" on "refusals" ("org_id", "id");`);
    this.addSql(`create index "refusals_inbox_id_id_index" on "refusals" ("inbox_id", "id");`);
    this.addSql(`create index "refusals_hour_index" on "refusals" ("hour");`);
    this.addSql(
      `alter table "refusals" add constraint "refusals_org_id_hour_fingerprint_unique" unique ("org_id", "hour", "fingerprint");`,
    );

    this.addSql(
      `create table "sweeps" ("name" text not null, "finished_at" timestamptz(3) not null, primary key ("name"));`,
    );

    this.addSql(
      `create index "notifications_failed_index" on "notifications" ("created_at") where "status" = 'failed';`,
    );

    this.addSql(
      `create index "exports_failed_index" on "exports" ("completed_at") where "status" = 'failed';`,
    );

    this.addSql(
      `create index "inboxes_paused_index" on "inboxes" ("id") where "send_paused" and "deleted_at" is null;`,
    );

    this.addSql(
      `create index "messages_unparsed_index" on "messages" ("id") where "parse_error" is not null;`,
    );
    this.addSql(replaceSqlFunction('reindex_message_content'));
    this.addSql(
      `create trigger "reindex_content" after update on "messages" for each row when (old.parse_error is distinct from new.parse_error) execute function "reindex_message_content"();`,
    );

    this.addSql(
      `create index "webhook_endpoints_disabled_index" on "webhook_endpoints" ("id") where "disabled" and "deleted_at" is null;`,
    );

    this.addSql(
      `alter table "refusals" add constraint "refusals_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "refusals" add constraint "refusals_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "refusals" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "refusals" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "refusals" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(`grant select on refusals to agent_email_api;
      grant select, insert, update, delete on refusals to agent_email_worker;
      grant select, insert, update on sweeps to agent_email_worker;
      grant update (attempts, last_error) on outbox to agent_email_api`);
  }
}
