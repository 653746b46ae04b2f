import { Migration } from '@mikro-orm/migrations';

/** Organizations ask the administrators of the service for another tier. */
export class Migration20261122125000_upgrade_requests extends Migration {
  override name = 'Migration20261122125000_upgrade_requests';

  override up(): void {
    this.addSql(
      `create table "upgrade_requests" ("id" text collate "C" not null, "org_id" text collate "C" not null, "tier" text not null, "current_tier" text not null, "note" text not null, "status" text not null default 'open', "requested_by_kind" text not null, "requested_by_id" text collate "C" not null, "created_at" timestamptz(3) not null, "decided_by" text collate "C" null, "decided_at" timestamptz(3) null, "decision_note" text null, primary key ("id"));`,
    );
    this.addSql(`create index "upgrade_requests_org_id_id_index" on "upgrade_requests" ("org_id", "id");`);
    this.addSql(`create index "upgrade_requests_status_id_index" on "upgrade_requests" ("status", "id");`);
    this.addSql(
      `create unique index "upgrade_requests_open_unique" on "upgrade_requests" ("org_id") where "status" = 'open';`,
    );
    this.addSql(
      `alter table "upgrade_requests" add constraint "upgrade_requests_tier" check (tier = ANY (ARRAY['free'::text, 'developer'::text, 'business'::text, 'enterprise'::text]));`,
    );
    this.addSql(
      `alter table "upgrade_requests" add constraint "upgrade_requests_status" check (status = ANY (ARRAY['open'::text, 'approved'::text, 'rejected'::text]));`,
    );
    this.addSql(
      `alter table "upgrade_requests" add constraint "upgrade_requests_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "upgrade_requests" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "upgrade_requests" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "upgrade_requests" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "staff" on "upgrade_requests" to "agent_email_staff" using (true) with check (true);`,
    );
    this.addSql(
      `grant select, insert on "upgrade_requests" to agent_email_api;
       grant select, update on "upgrade_requests" to agent_email_staff;
       grant select on "upgrade_requests" to agent_email_worker`,
    );
  }
}
