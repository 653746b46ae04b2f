import { Migration } from '@mikro-orm/migrations';

/** Stores the person behind a key: developers manage only their own keys. */
export class Migration20261122065500_key_owners extends Migration {
  override name = 'Migration20261122065500_key_owners';

  override up(): void {
    this.addSql(`alter table "api_keys" add "created_by_user_id" text collate "C" null;`);
  }
}
