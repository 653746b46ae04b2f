import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

export class Migration20261123185320_connections extends Migration {
  override name = 'Migration20261123185320_connections';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "connection_clients" ("id_hash" bytea not null, "metadata" jsonb not null, "network_hash" bytea not null, "last_used_at" timestamptz(3) null, "created_at" timestamptz(3) not null default now(), primary key ("id_hash"));`,
    );
    this.addSql(
      `create index "connection_clients_network_hash_created_at_index" on "connection_clients" ("network_hash", "created_at");`,
    );
    this.addSql(
      `create index "connection_clients_last_used_at_index" on "connection_clients" ("last_used_at");`,
    );

    this.addSql(
      `create table "connections" ("id" text collate "C" not null, "org_id" text collate "C" not null, "env_id" text collate "C" null, "inbox_id" text collate "C" null, "user_id" text collate "C" not null, "client_id" text not null, "client_name" text not null, "redirect_to" text not null, "permissions" text[] not null, "method" text not null, "factors" text[] not null, "sso_configuration_id" text collate "C" null, "authenticated_at" timestamptz(3) not null, "expires_at" timestamptz(3) not null, "last_used_at" timestamptz(3) null, "ended_at" timestamptz(3) null, "end_reason" text null, "created_at" timestamptz(3) not null default now(), primary key ("id"));`,
    );
    this.addSql(`create index "connections_org_id_id_index" on "connections" ("org_id", "id");`);
    this.addSql(`create index "connections_user_id_id_index" on "connections" ("user_id", "id");`);
    this.addSql(`create index "connections_ended_at_index" on "connections" ("ended_at");`);
    this.addSql(`create index "connections_client_id_index" on "connections" ("client_id");`);

    this.addSql(
      `create table "connection_tokens" ("token_hash" bytea not null, "kind" text not null, "connection_id" text collate "C" null, "payload" jsonb not null, "consumed_at" timestamptz(3) null, "expires_at" timestamptz(3) not null, "created_at" timestamptz(3) not null default now(), primary key ("token_hash"));`,
    );
    this.addSql(
      `create index "connection_tokens_connection_id_index" on "connection_tokens" ("connection_id");`,
    );
    this.addSql(`create index "connection_tokens_expires_at_index" on "connection_tokens" ("expires_at");`);

    this.addSql(
      `alter table "connections" add constraint "connections_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "connections" add constraint "connections_env_id_foreign" foreign key ("env_id") references "environments" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "connections" add constraint "connections_inbox_id_foreign" foreign key ("inbox_id") references "inboxes" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "connections" add constraint "connections_user_id_foreign" foreign key ("user_id") references "users" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "connections" add constraint "connections_end_reason" check (end_reason = ANY (ARRAY['person'::text, 'client'::text, 'reuse'::text, 'membership'::text, 'unused'::text]));`,
    );
    this.addSql(
      `create trigger "signal_connections_access" after update on "connections" for each row when (old.ended_at is distinct from new.ended_at) execute function "signal_access"();`,
    );
    this.addSql(`alter table "connections" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "connections" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "connections" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "lookup" on "connections" to "agent_email_lookup" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "people" on "connections" to "agent_email_people" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "connection_tokens" add constraint "connection_tokens_connection_id_foreign" foreign key ("connection_id") references "connections" ("id") on delete cascade;`,
    );
    this.addSql(
      `alter table "connection_tokens" add constraint "connection_tokens_kind" check (kind = ANY (ARRAY['interaction'::text, 'authorization_code'::text, 'access_token'::text, 'refresh_token'::text]));`,
    );

    this.addSql(
      `grant select, insert, update (ended_at, end_reason, last_used_at) on "connections" to agent_email_api; grant select, update, delete on "connections" to agent_email_worker; grant select, update (ended_at, end_reason) on "connections" to agent_email_people; grant select on "connections" to agent_email_lookup;`,
    );
    this.addSql(
      `grant select, insert, update, delete on "connection_clients", "connection_tokens" to agent_email_people, agent_email_worker; grant select on "connection_tokens" to agent_email_lookup;`,
    );
    this.addSql(replaceSqlFunction('signal_access'));
    this.addSql(replaceSqlFunction('find_connection'));
    this.addSql(`grant create on schema public to agent_email_lookup;`);
    this.addSql(`alter function find_connection owner to agent_email_lookup;`);
    this.addSql(`revoke create on schema public from agent_email_lookup;`);
    this.addSql(`revoke all on function find_connection from public;`);
    this.addSql(`grant execute on function find_connection to agent_email_api;`);
  }
}
