import { Migration } from '@mikro-orm/migrations';

export class Migration20261121071728_inbox_purges extends Migration {
  override name = 'Migration20261121071728_inbox_purges';

  override up(): void {
    this.addSql(
      `alter table "inboxes" add "purge_requested_at" timestamptz(3) null, add "purged_at" timestamptz(3) null, add "checked_at" timestamptz(3) null;`,
    );
    this.addSql(
      `create index "inboxes_purges_index" on "inboxes" ("purge_requested_at") where "purge_requested_at" is not null and "purged_at" is null;`,
    );
  }
}
