import { Migration } from '@mikro-orm/migrations';

export class Migration20261123155641_aliases_and_catch_all extends Migration {
  override name = 'Migration20261123155641_aliases_and_catch_all';

  override up(): void | Promise<void> {
    this.addSql(`alter table "domains" add "catch_all_inbox_id" text collate "C" null;`);
    this.addSql(
      `create index "domains_catch_all_index" on "domains" ("catch_all_inbox_id") where "catch_all_inbox_id" is not null;`,
    );

    this.addSql(`alter table "inboxes" add "aliases" text[] not null default '{}';`);

    this.addSql(`alter table "messages" add "delivered_to" text null;`);
  }
}
