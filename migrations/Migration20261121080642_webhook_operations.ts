import { Migration } from '@mikro-orm/migrations';

export class Migration20261121080642_webhook_operations extends Migration {
  override name = 'Migration20261121080642_webhook_operations';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "webhook_bulk_jobs" ("id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" not null, "endpoint_id" text collate "C" not null, "kind" text not null, "status" text not null default 'running', "detail" text null, "since" timestamptz(3) null, "until" timestamptz(3) not null, "event_types" text[] null, "only_failed" boolean not null default false, "position" text collate "C" null, "deliveries" int not null default 0, "checked_at" timestamptz(3) null, "created_at" timestamptz(3) not null, "completed_at" timestamptz(3) null, primary key ("id"));`,
    );
    this.addSql(
      `create unique index "webhook_bulk_jobs_running_unique" on "webhook_bulk_jobs" ("endpoint_id") where "status" = 'running';`,
    );

    this.addSql(`alter table "events" add "test" boolean not null default false;`);

    this.addSql(
      `alter table "webhook_endpoints" add "previous_secret" bytea null, add "previous_secret_expires_at" timestamptz(3) null;`,
    );

    this.addSql(`drop index "webhook_deliveries_event_id_index";`);
    this.addSql(`drop index "webhook_deliveries_held_index";`);
    this.addSql(
      `create index "webhook_deliveries_endpoint_id_status_id_index" on "webhook_deliveries" ("endpoint_id", "status", "id");`,
    );
    this.addSql(
      `create index "webhook_deliveries_event_id_endpoint_id_index" on "webhook_deliveries" ("event_id", "endpoint_id");`,
    );

    this.addSql(
      `alter table "webhook_bulk_jobs" add constraint "webhook_bulk_jobs_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "webhook_bulk_jobs" add constraint "webhook_bulk_jobs_endpoint_id_foreign" foreign key ("endpoint_id") references "webhook_endpoints" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "webhook_bulk_jobs" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "webhook_bulk_jobs" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "webhook_bulk_jobs" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(`grant select, insert, update, delete on webhook_bulk_jobs to agent_email_worker`);
    this.addSql(`grant select, insert, update on webhook_bulk_jobs to agent_email_api`);
  }
}
