import { Migration } from '@mikro-orm/migrations';

export class Migration20261121064902_announced_messages extends Migration {
  override name = 'Migration20261121064902_announced_messages';

  override up(): void {
    this.addSql(`alter table "messages" add "announced" boolean not null default true;`);
  }
}
