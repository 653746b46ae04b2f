import { Migration } from '@mikro-orm/migrations';

/** Notifications of a provider name a mail by the provider's own id. */
export class Migration20261121074000_provider_message_ids extends Migration {
  override name = 'Migration20261121074000_provider_message_ids';

  override up(): void {
    this.addSql(
      `create index "send_attempts_provider_message_id_index" on "send_attempts" ("provider_message_id") where "provider_message_id" is not null`,
    );
  }
}
