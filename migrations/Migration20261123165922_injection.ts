import { Migration } from '@mikro-orm/migrations';

export class Migration20261123165922_injection extends Migration {
  override name = 'Migration20261123165922_injection';

  override up(): void | Promise<void> {
    this.addSql(
      `alter table "messages" add "injection" jsonb not null default '{"level": "none", "reasons": []}';`,
    );
  }
}
