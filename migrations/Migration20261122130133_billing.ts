import { Migration } from '@mikro-orm/migrations';

/** Subscriptions at Stripe, the events that changed them, and the graces after failed payments. */
export class Migration20261122130133_billing extends Migration {
  override name = 'Migration20261122130133_billing';

  override up(): void {
    this.addSql(
      `create table "billing_subscriptions" ("id" text collate "C" not null, "org_id" text collate "C" not null, "status" text null, "price_id" text collate "C" null, "tier" text null, "current_period_end" timestamptz(3) null, "cancel_at" timestamptz(3) null, "scheduled_tier" text null, "open_invoice_id" text collate "C" null, "open_invoice_url" text null, "next_attempt_at" timestamptz(3) null, "ended_at" timestamptz(3) null, "problem" text null, "read_version" int not null default 0, "requested_at" timestamptz(3) null, "synced_at" timestamptz(3) null, "reconciled_at" timestamptz(3) null, "created_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(
      `create index "billing_subscriptions_org_id_id_index" on "billing_subscriptions" ("org_id", "id");`,
    );
    this.addSql(
      `create index "billing_subscriptions_requested_index" on "billing_subscriptions" ("requested_at") where "requested_at" is not null;`,
    );
    this.addSql(
      `create index "billing_subscriptions_open_index" on "billing_subscriptions" ("synced_at") where "ended_at" is null;`,
    );
    this.addSql(
      `create table "billing_customers" ("org_id" text collate "C" not null, "customer_id" text collate "C" not null, "applied_tier" text null, "checkout_session_id" text collate "C" null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, primary key ("org_id"));`,
    );
    this.addSql(
      `alter table "billing_customers" add constraint "billing_customers_customer_id_unique" unique ("customer_id");`,
    );
    this.addSql(
      `create table "payment_graces" ("id" text collate "C" not null, "org_id" text collate "C" not null, "subscription_id" text collate "C" not null, "episode" int not null, "status" text not null default 'waiting', "started_at" timestamptz(3) not null, "suspend_at" timestamptz(3) not null, "next_step_at" timestamptz(3) null, "reminders_sent" int not null default 0, "suspended_at" timestamptz(3) null, "closed_at" timestamptz(3) null, "reconciled_at" timestamptz(3) null, primary key ("id"));`,
    );
    this.addSql(`create index "payment_graces_org_id_id_index" on "payment_graces" ("org_id", "id");`);
    this.addSql(
      `create unique index "payment_graces_open_unique" on "payment_graces" ("subscription_id") where "closed_at" is null;`,
    );
    this.addSql(
      `create index "payment_graces_next_step_index" on "payment_graces" ("next_step_at") where "closed_at" is null;`,
    );
    this.addSql(
      `create table "stripe_events" ("id" text collate "C" not null, "org_id" text collate "C" not null, "type" text not null, "subscription_id" text collate "C" null, "created_at" timestamptz(3) not null, "received_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(`create index "stripe_events_org_id_id_index" on "stripe_events" ("org_id", "id");`);
    this.addSql(`create index "stripe_events_received_at_index" on "stripe_events" ("received_at");`);
    this.addSql(
      `alter table "billing_subscriptions" add constraint "billing_subscriptions_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "billing_subscriptions" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "billing_subscriptions" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "billing_subscriptions" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "staff" on "billing_subscriptions" to "agent_email_staff" using (true) with check (true);`,
    );
    this.addSql(
      `alter table "billing_customers" add constraint "billing_customers_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on update cascade on delete cascade;`,
    );
    this.addSql(`alter table "billing_customers" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "billing_customers" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "billing_customers" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "staff" on "billing_customers" to "agent_email_staff" using (true) with check (true);`,
    );
    this.addSql(
      `alter table "payment_graces" add constraint "payment_graces_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "payment_graces" add constraint "payment_graces_status" check (status = ANY (ARRAY['waiting'::text, 'suspended'::text, 'recovered'::text, 'ended'::text]));`,
    );
    this.addSql(`alter table "payment_graces" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "payment_graces" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "payment_graces" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "staff" on "payment_graces" to "agent_email_staff" using (true) with check (true);`,
    );
    this.addSql(
      `alter table "stripe_events" add constraint "stripe_events_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "stripe_events" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "stripe_events" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "stripe_events" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "staff" on "stripe_events" to "agent_email_staff" using (true) with check (true);`,
    );
    this.addSql(
      `grant select on "billing_subscriptions", "payment_graces" to agent_email_api;
       grant select, insert, update on "billing_customers" to agent_email_api;
       grant select, insert, update, delete on "billing_customers", "billing_subscriptions", "payment_graces", "stripe_events" to agent_email_worker;
       grant select on "billing_customers", "billing_subscriptions" to agent_email_staff;
       grant select, update on "payment_graces" to agent_email_staff`,
    );
  }
}
