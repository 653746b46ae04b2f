import { Migration } from '@mikro-orm/migrations';

/** Attachments of drafts, uploads, and the list of objects that may have nobody. */
export class Migration20261121064249_attachment_owners extends Migration {
  override name = 'Migration20261121064249_attachment_owners';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "discarded_objects" ("storage_key" text not null, "org_id" text collate "C" not null, "due_at" timestamptz(3) not null, "deleting" boolean not null default false, primary key ("storage_key"));`,
    );
    this.addSql(`create index "discarded_objects_due_at_index" on "discarded_objects" ("due_at");`);

    this.addSql(`alter table "attachments" add "draft_id" text collate "C" null;`);
    this.addSql(
      `alter table "attachments" add constraint "attachments_draft_id_foreign" foreign key ("draft_id") references "drafts" ("id") on delete cascade;`,
    );
    this.addSql(`alter table "attachments" alter column "message_id" drop not null;`);
    this.addSql(
      `create index "attachments_draft_id_position_index" on "attachments" ("draft_id", "position");`,
    );
    this.addSql(`create index "attachments_storage_key_index" on "attachments" ("storage_key");`);
    this.addSql(
      `create index "attachments_unused_index" on "attachments" ("created_at") where "message_id" is null and "draft_id" is null;`,
    );
    this.addSql(
      `alter table "attachments" add constraint "attachments_one_owner" check (message_id is null or draft_id is null);`,
    );
    this.addSql(
      `create or replace function "attachments_attachments_discard_object_fn"() returns trigger as $$ begin insert into discarded_objects (storage_key, org_id, due_at) values (old.storage_key, old.org_id, now()) on conflict (storage_key) do update set due_at = excluded.due_at; return null; end; $$ language plpgsql;`,
    );
    this.addSql(
      `create trigger "attachments_discard_object" AFTER DELETE on "attachments" for each ROW execute function "attachments_attachments_discard_object_fn"();`,
    );

    this.addSql(`alter table "discarded_objects" enable row level security;`);
    this.addSql(
      `create policy "tenant" on "discarded_objects" to "agent_email_api" using (org_id = nullif(current_setting('app.org_id', true), '')) with check (org_id = nullif(current_setting('app.org_id', true), ''));`,
    );
    this.addSql(
      `create policy "worker" on "discarded_objects" to "agent_email_worker" using (true) with check (true);`,
    );
    this.addSql(
      `grant select, insert, update, delete on "discarded_objects" to agent_email_api, agent_email_worker;`,
    );
  }

  override down(): void | Promise<void> {
    this.addSql(`drop table if exists "discarded_objects" cascade;`);

    this.addSql(`alter table "attachments" drop constraint "attachments_draft_id_foreign";`);

    this.addSql(`drop index "attachments_draft_id_position_index";`);
    this.addSql(`drop index "attachments_storage_key_index";`);
    this.addSql(`drop index "attachments_unused_index";`);
    this.addSql(`alter table "attachments" drop constraint "attachments_one_owner";`);
    this.addSql(`drop trigger if exists "attachments_discard_object" on "attachments";`);
    this.addSql(`drop function if exists "attachments_attachments_discard_object_fn"();`);
    this.addSql(`alter table "attachments" drop column "draft_id";`);
    this.addSql(`alter table "attachments" alter column "message_id" set not null;`);
  }
}
