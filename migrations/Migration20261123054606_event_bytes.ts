import { Migration } from '@mikro-orm/migrations';

export class Migration20261123054606_event_bytes extends Migration {
  override name = 'Migration20261123054606_event_bytes';

  override up(): void | Promise<void> {
    this.addSql(
      `alter table "events" add "data_bytes" int generated always as (octet_length((data)::text)) stored not null;`,
    );
  }
}
