import { Migration } from '@mikro-orm/migrations';

/** Counters, their limits and their ledger. */
export class Migration20261121102555_usage extends Migration {
  override name = 'Migration20261121102555_usage';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "limit_overrides" ("org_id" text collate "C" not null, "limited" text not null, "amount" bigint null, "kind" text not null, "expires_at" timestamptz(3) null, "reason" text not null, "created_by" text not null, "created_at" timestamptz(3) not null, primary key ("org_id", "limited"));`,
    );

    this.addSql(
      `create table "own_limits" ("org_id" text collate "C" not null, "counter" text not null, "amount" bigint null, "warning_percent" smallint null, "updated_at" timestamptz(3) not null, primary key ("org_id", "counter"));`,
    );

    this.addSql(
      `create table "usage_alerts" ("org_id" text collate "C" not null, "counter" text not null, "threshold" smallint not null, "period_start" timestamptz(3) not null, "created_at" timestamptz(3) not null, primary key ("org_id", "counter", "threshold", "period_start"));`,
    );
    this.addSql(`create index "usage_alerts_period_start_index" on "usage_alerts" ("period_start");`);

    this.addSql(
      `create table "usage_counters" ("org_id" text collate "C" not null, "counter" text not null, "period_start" timestamptz(3) not null, "amount" bigint not null, primary key ("org_id", "counter", "period_start"));`,
    );

    this.addSql(
      `create table "usage_deltas" ("id" bigserial primary key, "org_id" text collate "C" not null, "counter" text not null, "at" timestamptz(3) not null, "amount" bigint not null);`,
    );
    this.addSql(`create index "usage_deltas_org_id_counter_index" on "usage_deltas" ("org_id", "counter");`);

    this.addSql(
      `create table "usage_events" ("id" text collate "C" not null, "org_id" text collate "C" not null, "kind" text not null, "counter" text null, "data" jsonb not null, "actor" text not null, "at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(`create index "usage_events_org_id_at_id_index" on "usage_events" ("org_id", "at", "id");`);
    this.addSql(`create index "usage_events_at_index" on "usage_events" ("at");`);
    this.addSql(
      `create unique index "usage_events_period_unique" on "usage_events" ("org_id", ("data" ->> 'period_start')) where "kind" = 'period_closed';`,
    );

    this.addSql(
      `create table "usage_hours" ("org_id" text collate "C" not null, "counter" text not null, "hour" timestamptz(3) not null, "amount" bigint not null, primary key ("org_id", "counter", "hour"));`,
    );
    this.addSql(`create index "usage_hours_org_id_hour_index" on "usage_hours" ("org_id", "hour");`);
    this.addSql(`create index "usage_hours_hour_index" on "usage_hours" ("hour");`);

    this.addSql(`alter table "organizations" add "tier" text not null default 'enterprise';`);

    for (const statement of STORAGE) this.addSql(statement);

    this.addSql(`alter table "webhook_deliveries" add "held_for" text null;`);
    this.addSql(
      `create index "webhook_deliveries_over_limit_index" on "webhook_deliveries" ("org_id", "id") where "status" = 'held' and "held_for" = 'usage_limit';`,
    );

    this.addSql(
      `alter table "limit_overrides" add constraint "limit_overrides_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "limit_overrides" add constraint "limit_overrides_not_negative" check (amount >= 0);`,
    );
    this.addSql(`alter table "limit_overrides" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "limit_overrides" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "limit_overrides" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "lookup" on "limit_overrides" to "agent_email_lookup" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "own_limits" add constraint "own_limits_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "own_limits" add constraint "own_limits_not_negative" check (amount >= 0);`);
    this.addSql(
      `alter table "own_limits" add constraint "own_limits_warning" check (warning_percent >= 1 and warning_percent <= 99);`,
    );
    this.addSql(`alter table "own_limits" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "own_limits" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "own_limits" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "lookup" on "own_limits" to "agent_email_lookup" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "usage_alerts" add constraint "usage_alerts_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "usage_alerts" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "usage_alerts" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "usage_alerts" to "agent_email_worker" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "usage_counters" add constraint "usage_counters_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "usage_counters" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "usage_counters" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "usage_counters" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "lookup" on "usage_counters" to "agent_email_lookup" using (true) with check (true);`,
    );

    this.addSql(`alter table "usage_deltas" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "usage_deltas" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "usage_deltas" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "lookup" on "usage_deltas" to "agent_email_lookup" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "usage_events" add constraint "usage_events_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "usage_events" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "usage_events" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "usage_events" to "agent_email_worker" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "usage_hours" add constraint "usage_hours_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "usage_hours" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "usage_hours" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "usage_hours" to "agent_email_worker" using (true) with check (true);`,
    );

    for (const statement of [...GRANTS, ...FUNCTIONS]) this.addSql(statement);
  }
}

/** `storage_bytes` follows the rows of attachments; what is there already is its first level. */
const STORAGE = [
  `create function count_storage() returns trigger language plpgsql as $$
   begin
     insert into usage_deltas (org_id, counter, at, amount)
     select org_id, 'storage_bytes', now(), case tg_op when 'DELETE' then - sum(size_bytes) else sum(size_bytes) end
     from changed group by org_id having sum(size_bytes) > 0;
     return null;
   end $$;`,
  `lock table "attachments" in share row exclusive mode;`,
  `insert into usage_counters (org_id, counter, period_start, amount)
   select org_id, 'storage_bytes', 'epoch', sum(size_bytes) from attachments group by org_id;`,
  `create trigger "attachments_count_added" after insert on "attachments" referencing new table as changed for each statement execute function "count_storage"();`,
  `create trigger "attachments_count_removed" after delete on "attachments" referencing old table as changed for each statement execute function "count_storage"();`,
];

const GRANTS = [
  `grant select, insert, update, delete on usage_counters, usage_hours, usage_deltas, usage_events, usage_alerts, limit_overrides, own_limits to agent_email_worker;`,
  `grant usage, select on sequence usage_deltas_id_seq to agent_email_api, agent_email_worker, agent_email_lookup;`,
  `grant select, insert, update on usage_counters, usage_hours to agent_email_api;`,
  `grant select, insert on usage_deltas, usage_events to agent_email_api;`,
  `grant select on usage_alerts, limit_overrides to agent_email_api;`,
  `grant select, insert, update, delete on own_limits to agent_email_api;`,
  `grant select on usage_counters, limit_overrides, own_limits to agent_email_lookup;`,
  `grant select, insert on usage_deltas to agent_email_lookup;`,
];

const FUNCTIONS = [
  // A process counts the calls of all organizations it served in one statement, and learns where each stands.
  `create function count_api_calls(calls jsonb, counted_at timestamptz, month_start timestamptz)
   returns table (org_id text, tier text, override_kind text, override_amount bigint, own_amount bigint, current bigint)
   language sql volatile security definer set search_path = public, pg_temp as $$
     with counted as (
       insert into usage_deltas (org_id, counter, at, amount)
       select c.key, 'api_calls', counted_at, c.value::bigint
       from jsonb_each_text(calls) c join organizations o on o.id = c.key
       where c.value::bigint > 0
       returning org_id, amount)
     select o.id, o.tier, v.kind, v.amount, w.amount,
       (coalesce((select u.amount from usage_counters u
           where u.org_id = o.id and u.counter = 'api_calls' and u.period_start = month_start), 0)
         + coalesce((select sum(d.amount) from usage_deltas d
           where d.org_id = o.id and d.counter = 'api_calls' and d.at >= month_start), 0)
         + coalesce((select n.amount from counted n where n.org_id = o.id), 0))::bigint
     from jsonb_object_keys(calls) as called
     join organizations o on o.id = called
     left join limit_overrides v on v.org_id = o.id and v.limited = 'api_calls'
       and (v.expires_at is null or v.expires_at > now())
     left join own_limits w on w.org_id = o.id and w.counter = 'api_calls'
   $$;`,
  `grant agent_email_lookup to current_user;`,
  `grant create on schema public to agent_email_lookup;`,
  `alter function count_api_calls(jsonb, timestamptz, timestamptz) owner to agent_email_lookup;`,
  `revoke create on schema public from agent_email_lookup;`,
  `revoke all on function count_api_calls(jsonb, timestamptz, timestamptz) from public;`,
  `grant execute on function count_api_calls(jsonb, timestamptz, timestamptz) to agent_email_api, agent_email_worker;`,
];
