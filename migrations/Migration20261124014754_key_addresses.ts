import { Migration } from '@mikro-orm/migrations';

export class Migration20261124014754_key_addresses extends Migration {
  override name = 'Migration20261124014754_key_addresses';

  override up(): void | Promise<void> {
    this.addSql(`alter table "api_keys" add "last_used_from" text null;`);
  }
}
