import { Migration } from '@mikro-orm/migrations';

export class Migration20261121070340_submitted_mail extends Migration {
  override name = 'Migration20261121070340_submitted_mail';

  override up(): void {
    this.addSql(`create index "inbound_receipts_raw_key_index" on "inbound_receipts" ("raw_key");`);

    this.addSql(`alter table "messages" add "submitted_key" text null;`);
    this.addSql(
      `create or replace function "messages_discard_raw_fn"() returns trigger as $$ begin insert into discarded_objects (storage_key, org_id, due_at) select key, old.org_id, now() from unnest(array[old.raw_key, old.submitted_key]) key where key is not null on conflict (storage_key) do update set due_at = excluded.due_at; return null; end; $$ language plpgsql;`,
    );
    this.addSql(
      `create trigger "discard_raw" AFTER DELETE on "messages" for each ROW execute function "messages_discard_raw_fn"();`,
    );
  }
}
