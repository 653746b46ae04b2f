import { Migration } from '@mikro-orm/migrations';

/** Body of both triggers, as metric-delta.entity.ts has it. */
const COUNT_MESSAGE = `insert into metric_deltas (org_id, env_id, inbox_id, hour, sent, delivered, bounced, complained, rejected, received, attempted) select new.org_id, new.env_id, new.inbox_id, date_trunc('hour', at, 'UTC'), count(*) filter (where what = 'sent'), count(*) filter (where what = 'delivered'), count(*) filter (where what = 'bounced'), count(*) filter (where what = 'complained'), count(*) filter (where what = 'rejected'), count(*) filter (where what = 'received'), count(*) filter (where what = 'attempted') from (values ('sent', case when old.sent_at is null then new.sent_at end), ('delivered', case when old.delivered_at is null then new.delivered_at end), ('bounced', case when old.bounced_at is null then new.bounced_at end), ('complained', case when old.complained_at is null then new.complained_at end), ('rejected', case when new.status = 'rejected' and old.status is distinct from 'rejected' then new.updated_at end), ('received', case when new.announced and (old.announced and old.received_at is not null) is not true then new.received_at end), ('attempted', case when old.sent_at is null and old.bounced_at is null then least(new.sent_at, new.bounced_at) end)) happened (what, at) where at is not null group by date_trunc('hour', at, 'UTC'); return null;`;

/** Counts of what happens to mail: added up by hour, and what was not added up yet. */
export class Migration20261121102529_metrics extends Migration {
  override name = 'Migration20261121102529_metrics';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "metric_deltas" ("id" bigserial primary key, "org_id" text collate "C" not null, "env_id" text collate "C" not null, "inbox_id" text collate "C" not null, "hour" timestamptz(3) not null, "sent" int not null default 0, "delivered" int not null default 0, "bounced" int not null default 0, "complained" int not null default 0, "rejected" int not null default 0, "received" int not null default 0, "attempted" int not null default 0);`,
    );
    this.addSql(`create index "metric_deltas_env_id_hour_index" on "metric_deltas" ("env_id", "hour");`);

    this.addSql(
      `create table "metric_hours" ("env_id" text collate "C" not null, "subject" text collate "C" not null, "hour" timestamptz(3) not null, "org_id" text collate "C" not null, "sent" int not null default 0, "delivered" int not null default 0, "bounced" int not null default 0, "complained" int not null default 0, "rejected" int not null default 0, "received" int not null default 0, "attempted" int not null default 0, primary key ("env_id", "subject", "hour"));`,
    );

    this.addSql(
      `create or replace function "messages_count_new_fn"() returns trigger as $$ begin ${COUNT_MESSAGE} end; $$ language plpgsql;`,
    );
    this.addSql(`create trigger "count_new" AFTER INSERT on "messages" for each ROW
  when (((COALESCE(new.sent_at, new.delivered_at, new.bounced_at, new.complained_at, new.received_at) IS NOT NULL) OR (new.status = 'rejected'::text))) execute function "messages_count_new_fn"();`);
    this.addSql(
      `create or replace function "messages_count_change_fn"() returns trigger as $$ begin ${COUNT_MESSAGE} end; $$ language plpgsql;`,
    );
    this.addSql(`create trigger "count_change" AFTER UPDATE on "messages" for each ROW
  when (((old.sent_at IS DISTINCT FROM new.sent_at) OR (old.delivered_at IS DISTINCT FROM new.delivered_at) OR (old.bounced_at IS DISTINCT FROM new.bounced_at) OR (old.complained_at IS DISTINCT FROM new.complained_at) OR (old.received_at IS DISTINCT FROM new.received_at) OR (old.announced IS DISTINCT FROM new.announced) OR ((new.status = 'rejected'::text) AND (old.status <> 'rejected'::text)))) execute function "messages_count_change_fn"();`);

    this.addSql(`alter table "metric_deltas" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "metric_deltas" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "metric_deltas" to "agent_email_worker" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "metric_hours" add constraint "metric_hours_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "metric_hours" add constraint "metric_hours_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "metric_hours" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "metric_hours" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "metric_hours" to "agent_email_worker" using (true) with check (true);`,
    );

    this.addSql(`grant select, insert, update, delete on metric_hours, metric_deltas to agent_email_worker;`);
    // What the API changes is counted as it is written; adding it up is a worker's.
    this.addSql(`grant select on metric_hours to agent_email_api;`);
    this.addSql(`grant select, insert on metric_deltas to agent_email_api;`);
    this.addSql(
      `grant usage, select on sequence metric_deltas_id_seq to agent_email_worker, agent_email_api;`,
    );

    // What happened before: added up by the sweeps that follow.
    this.addSql(BACKFILL);

    // A part of reading mail (design: identity.md): who may do that may read what became of it.
    this.addSql(
      `update api_keys set permissions = permissions || '{metrics:read}'::text[]
       where 'messages:read' = any(permissions) and not 'metrics:read' = any(permissions);`,
    );
  }
}

const BACKFILL = `insert into metric_deltas (org_id, env_id, inbox_id, hour, sent, delivered, bounced, complained, rejected, received, attempted)
  select org_id, env_id, inbox_id, date_trunc('hour', at, 'UTC'),
    count(*) filter (where what = 'sent'), count(*) filter (where what = 'delivered'),
    count(*) filter (where what = 'bounced'), count(*) filter (where what = 'complained'),
    count(*) filter (where what = 'rejected'), count(*) filter (where what = 'received'),
    count(*) filter (where what = 'attempted')
  from messages, lateral (values
    ('sent', sent_at), ('delivered', delivered_at), ('bounced', bounced_at), ('complained', complained_at),
    ('rejected', case when status = 'rejected' then updated_at end),
    ('received', case when announced then received_at end),
    ('attempted', least(sent_at, bounced_at))) happened (what, at)
  where at is not null
  group by org_id, env_id, inbox_id, date_trunc('hour', at, 'UTC')`;
