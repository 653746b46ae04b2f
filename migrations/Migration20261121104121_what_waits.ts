import { Migration } from '@mikro-orm/migrations';

export class Migration20261121104121_what_waits extends Migration {
  override name = 'Migration20261121104121_what_waits';

  override up(): void | Promise<void> {
    this.addSql(`create index "outbox_dead_index" on "outbox" ("dead_at") where "dead_at" is not null;`);

    this.addSql(
      `create index "webhook_deliveries_held_index" on "webhook_deliveries" ("created_at") where "status" = 'held';`,
    );
  }
}
