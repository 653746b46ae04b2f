import { Migration } from '@mikro-orm/migrations';

export class Migration20261121103600_exports extends Migration {
  override name = 'Migration20261121103600_exports';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "exports" ("id" text collate "C" not null, "org_id" text collate "C" not null, "requested_by" text collate "C" not null, "status" text not null default 'queued', "status_detail" text null, "checkpoint" int not null default 0, "upload_id" text null, "storage_key" text not null, "part_size_bytes" int not null default 0, "position" jsonb null, "carry" bytea null, "rows_done" bigint not null default '0', "rows_total" bigint not null default '0', "files_done" bigint not null default '0', "files_total" bigint not null default '0', "size_bytes" bigint not null default '0', "started_at" timestamptz(3) null, "completed_at" timestamptz(3) null, "expires_at" timestamptz(3) null, "checked_at" timestamptz(3) null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(`create index "exports_org_id_id_index" on "exports" ("org_id", "id");`);
    this.addSql(
      `create unique index "exports_running_unique" on "exports" ("org_id") where "status" in ('queued', 'running');`,
    );
    this.addSql(
      `create index "exports_left_over_index" on "exports" ("updated_at") where "status" = 'ready' or "upload_id" is not null;`,
    );

    this.addSql(
      `create table "export_pieces" ("export_id" text collate "C" not null, "number" int not null, "org_id" text collate "C" not null, "part_number" int null, "etag" text null, "directory" bytea not null, "missing" text not null, primary key ("export_id", "number"));`,
    );

    this.addSql(
      `alter table "exports" add constraint "exports_org_id_foreign" foreign key ("org_id") references "organizations" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "exports" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "exports" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "exports" to "agent_email_worker" using (true) with check (true);`,
    );

    this.addSql(
      `alter table "export_pieces" add constraint "export_pieces_export_id_foreign" foreign key ("export_id") references "exports" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "export_pieces" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "export_pieces" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "export_pieces" to "agent_email_worker" using (true) with check (true);`,
    );

    this.addSql(`grant select, insert, update, delete on exports, export_pieces to agent_email_worker;`);
    this.addSql(`grant select, insert, update on exports to agent_email_api;`);
    // Exports are read under row-level security: workers step down to this role. It may read what the API may, and a
    // little more; of people, what their organization knows.
    this.addSql(`do $$ begin
      if not exists (select from pg_roles where rolname = 'agent_email_export') then
        create role agent_email_export nologin;
      end if;
    end $$;`);
    this.addSql(`grant agent_email_api to agent_email_export;`);
    this.addSql(`grant agent_email_export to agent_email_worker;`);
    this.addSql(`grant usage on schema public to agent_email_export;`);
    this.addSql(`grant select on notifications to agent_email_export;`);
    this.addSql(`grant select (id, email, name) on users to agent_email_export;`);
    // Whoever may manage keys may grant what it has itself; without this nobody could grant the new permission.
    this.addSql(
      `update api_keys set permissions = permissions || '{export:create}'::text[]
       where 'keys:manage' = any(permissions) and not 'export:create' = any(permissions);`,
    );
  }
}
