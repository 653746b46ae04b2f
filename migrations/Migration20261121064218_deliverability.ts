import { Migration } from '@mikro-orm/migrations';

/** Suppressions, allow and block lists, and the outcomes that pause an inbox. */
export class Migration20261121064218_deliverability extends Migration {
  override name = 'Migration20261121064218_deliverability';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "list_entries" ("id" text collate "C" not null, "org_id" text collate "C" not null, "direction" text not null, "effect" text not null, "entry" text not null, "env_id" text collate "C" null, "inbox_id" text collate "C" null, "created_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(
      `create index "list_entries_org_id_direction_effect_id_index" on "list_entries" ("org_id", "direction", "effect", "id");`,
    );
    this.addSql(
      `create unique index "list_entries_unique" on "list_entries" ("org_id", "direction", "entry", "effect", "env_id", "inbox_id") nulls not distinct;`,
    );

    this.addSql(
      `create table "reputation_outcomes" ("inbox_id" text collate "C" not null, "kind" text not null, "message_id" text collate "C" not null, "position" smallint not null, "org_id" text collate "C" not null, "created_at" timestamptz(3) not null, primary key ("inbox_id", "kind", "message_id", "position"));`,
    );
    this.addSql(
      `create index "reputation_outcomes_created_at_index" on "reputation_outcomes" ("created_at");`,
    );

    this.addSql(
      `create table "suppressions" ("id" text collate "C" not null, "org_id" text collate "C" not null, "email" text not null, "origin" text not null, "env_id" text collate "C" null, "inbox_id" text collate "C" null, "message_id" text collate "C" null, "status" text null, "diagnostic" text null, "created_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(`create index "suppressions_org_id_id_index" on "suppressions" ("org_id", "id");`);
    this.addSql(
      `alter table "suppressions" add constraint "suppressions_org_id_email_unique" unique ("org_id", "email");`,
    );

    this.addSql(`alter table "inboxes" add "send_resumed_at" timestamptz(3) null;`);

    this.addSql(
      `create index "messages_outbound_index" on "messages" ("inbox_id", "id") where "direction" = 'outbound';`,
    );

    this.addSql(
      `alter table "list_entries" add constraint "list_entries_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "list_entries" add constraint "list_entries_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "list_entries" add constraint "list_entries_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "list_entries" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "list_entries" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "list_entries" to "agent_email_worker" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "reputation_outcomes" add constraint "reputation_outcomes_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "reputation_outcomes" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "reputation_outcomes" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "reputation_outcomes" to "agent_email_worker" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "suppressions" add constraint "suppressions_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "suppressions" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "suppressions" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "suppressions" to "agent_email_worker" using (true) with check (true);`,
    );

    this.addSql(
      `grant select, insert, update, delete on suppressions, list_entries, reputation_outcomes to agent_email_worker;`,
    );
    this.addSql(`grant select, insert, update, delete on suppressions, list_entries to agent_email_api;`);
    // Whoever may manage keys may grant what it has itself; without this nobody could grant the new permissions.
    this.addSql(
      `update api_keys set permissions = permissions ||
         '{inboxes:manage,suppressions:read,suppressions:manage,lists:read,lists:manage}'::text[]
       where 'keys:manage' = any(permissions) and not 'lists:manage' = any(permissions);`,
    );
  }
}
