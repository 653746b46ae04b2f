import { Migration } from '@mikro-orm/migrations';

export class Migration20261123163931_authenticated_list_entries extends Migration {
  override name = 'Migration20261123163931_authenticated_list_entries';

  override up(): void | Promise<void> {
    this.addSql(`alter table "list_entries" add "authenticated" boolean not null default false;`);
  }
}
