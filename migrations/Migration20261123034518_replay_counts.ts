import { Migration } from '@mikro-orm/migrations';

export class Migration20261123034518_replay_counts extends Migration {
  override name = 'Migration20261123034518_replay_counts';

  override up(): void | Promise<void> {
    this.addSql(
      `alter table "webhook_bulk_jobs" add "expedited" int not null default 0, add "skipped" jsonb not null default '{}';`,
    );
  }
}
