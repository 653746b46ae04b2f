import { Migration } from '@mikro-orm/migrations';

export class Migration20261124012816_inbox_pauses extends Migration {
  override name = 'Migration20261124012816_inbox_pauses';

  override up(): void | Promise<void> {
    this.addSql(
      `alter table "inboxes" add "send_paused_by_kind" text null, add "send_paused_by_id" text null, add "send_paused_at" timestamptz(3) null, add "reputation_paused" boolean not null default false;`,
    );
    // Until now only the service paused inboxes.
    this.addSql(
      `update "inboxes" set "reputation_paused" = true, "send_paused_at" = "updated_at" where "send_paused";`,
    );
    this.addSql(`drop index "inboxes_paused_index";`);
    this.addSql(
      `create index "inboxes_reputation_paused_index" on "inboxes" ("id") where "reputation_paused" and "deleted_at" is null;`,
    );
  }
}
