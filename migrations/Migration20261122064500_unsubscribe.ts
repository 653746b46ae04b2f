import { Migration } from '@mikro-orm/migrations';

/** A draft may ask for a link for one-click unsubscription. */
export class Migration20261122064500_unsubscribe extends Migration {
  override name = 'Migration20261122064500_unsubscribe';

  override up(): void {
    this.addSql(`alter table "drafts" add "unsubscribe" bool not null default false;`);
  }
}
