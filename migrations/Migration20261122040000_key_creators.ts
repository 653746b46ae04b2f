import { Migration } from '@mikro-orm/migrations';

/** Stores which key created a key, so that both can be revoked together. */
export class Migration20261122040000_key_creators extends Migration {
  override name = 'Migration20261122040000_key_creators';

  override up(): void {
    this.addSql(`alter table "api_keys" add "created_by_key_id" text collate "C" null;`);
    this.addSql(`create index "api_keys_created_by_key_id_index" on "api_keys" ("created_by_key_id");`);
  }
}
