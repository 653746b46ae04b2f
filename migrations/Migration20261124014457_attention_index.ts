import { Migration } from '@mikro-orm/migrations';

export class Migration20261124014457_attention_index extends Migration {
  override name = 'Migration20261124014457_attention_index';

  override up(): void | Promise<void> {
    this.addSql(
      `create index "messages_attention_index" on "messages" ("env_id", "id") where "status" = 'needs_attention';`,
    );
  }
}
