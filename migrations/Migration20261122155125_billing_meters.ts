import { Migration } from '@mikro-orm/migrations';

/** Use beyond soft limits for Stripe, an index of subscriptions that need attention, and what a deletion has to know. */
export class Migration20261122155125_billing_meters extends Migration {
  override name = 'Migration20261122155125_billing_meters';

  override up(): void {
    this.addSql(
      `create table "billing_meters" ("subscription_id" text collate "C" not null, "counter" text not null, "org_id" text collate "C" not null, "customer_id" text collate "C" not null, "price_id" text collate "C" not null, "meter_id" text collate "C" not null, "event_name" text not null, "customer_field" text not null, "value_field" text not null, "settled_until" timestamptz(3) not null, "highest_amount" bigint null, "ended_at" timestamptz(3) null, primary key ("subscription_id", "counter"));`,
    );
    this.addSql(`create index "billing_meters_org_id_index" on "billing_meters" ("org_id");`);
    this.addSql(`create index "billing_meters_settled_until_index" on "billing_meters" ("settled_until");`);
    this.addSql(
      `create table "meter_reports" ("id" text collate "C" not null, "org_id" text collate "C" not null, "subscription_id" text collate "C" not null, "counter" text not null, "window_start" timestamptz(3) not null, "units" bigint not null, "created_at" timestamptz(3) not null, "sent_at" timestamptz(3) null, "reported_at" timestamptz(3) null, "refused_at" timestamptz(3) null, "refusal" text null, primary key ("id"));`,
    );
    this.addSql(`create index "meter_reports_org_id_id_index" on "meter_reports" ("org_id", "id");`);
    this.addSql(`create index "meter_reports_created_at_index" on "meter_reports" ("created_at");`);
    this.addSql(
      `create index "meter_reports_pending_index" on "meter_reports" ("window_start", "id") where "reported_at" is null and "refused_at" is null;`,
    );
    this.addSql(
      `create index "meter_reports_refused_index" on "meter_reports" ("refused_at") where "refused_at" is not null;`,
    );
    this.addSql(
      `create index "billing_subscriptions_problem_index" on "billing_subscriptions" ("synced_at") where "problem" is not null and "ended_at" is null;`,
    );
    this.addSql(
      `alter table "billing_meters" add constraint "billing_meters_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "billing_meters" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "billing_meters" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "billing_meters" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "staff" on "billing_meters" to "agent_email_staff" using (true) with check (true);`,
    );
    this.addSql(
      `alter table "meter_reports" add constraint "meter_reports_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "meter_reports" add constraint "meter_reports_positive" check (units > 0);`);
    this.addSql(`alter table "meter_reports" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "meter_reports" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "meter_reports" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "staff" on "meter_reports" to "agent_email_staff" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "people" on "billing_subscriptions" to "agent_email_people" using (true) with check (true);`,
    );
    this.addSql(
      `grant select on "billing_meters" to agent_email_api;
       grant select on "billing_subscriptions" to agent_email_people;
       grant select, insert, update, delete on "billing_meters", "meter_reports" to agent_email_worker;
       grant select on "billing_meters", "meter_reports" to agent_email_staff`,
    );
  }
}
