import { Migration } from '@mikro-orm/migrations';

/** Suspensions of organizations, environments and inboxes, each with its reason, and the deliveries that wait for their end. */
export class Migration20261122122000_suspensions extends Migration {
  override name = 'Migration20261122122000_suspensions';

  override up(): void {
    this.addSql(
      `create table "suspensions" ("id" text collate "C" not null, "org_id" text collate "C" not null, "target_type" text not null, "target_id" text collate "C" not null, "reason" text not null, "note" text not null, "actor_kind" text not null, "actor_id" text collate "C" not null, "created_at" timestamptz(3) not null, "lifted_at" timestamptz(3) null, "lifted_note" text null, "lifted_by_kind" text null, "lifted_by_id" text collate "C" null, "changed_at" timestamptz(3) not null, "settled_at" timestamptz(3) null, "reconciled_at" timestamptz(3) null, primary key ("id"));`,
    );
    this.addSql(`create index "suspensions_org_id_id_index" on "suspensions" ("org_id", "id");`);
    this.addSql(
      `create unique index "suspensions_open_unique" on "suspensions" ("target_id", "reason") where "lifted_at" is null;`,
    );
    this.addSql(
      `create index "suspensions_unsettled_index" on "suspensions" ("changed_at") where "settled_at" is null;`,
    );
    this.addSql(
      `alter table "suspensions" add constraint "suspensions_reason" check (reason = ANY (ARRAY['payment'::text, 'abuse'::text, 'support'::text, 'policy'::text]));`,
    );
    this.addSql(
      `alter table "suspensions" add constraint "suspensions_target_type" check (target_type = ANY (ARRAY['organization'::text, 'environment'::text, 'inbox'::text]));`,
    );
    this.addSql(
      `alter table "suspensions" add constraint "suspensions_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `create index "webhook_deliveries_suspended_index" on "webhook_deliveries" ("org_id", "id") where "status" = 'held' and "held_for" = 'suspension';`,
    );
    this.addSql(`alter table "suspensions" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "suspensions" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "suspensions" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "staff" on "suspensions" to "agent_email_staff" using (true) with check (true);`,
    );
    this.addSql(
      `grant select on "suspensions" to agent_email_api;
       grant select, insert, update on "suspensions" to agent_email_worker, agent_email_staff;
       grant select (id, dedupe_key) on "notifications" to agent_email_staff`,
    );
  }
}
