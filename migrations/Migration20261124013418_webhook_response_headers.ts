import { Migration } from '@mikro-orm/migrations';

export class Migration20261124013418_webhook_response_headers extends Migration {
  override name = 'Migration20261124013418_webhook_response_headers';

  override up(): void | Promise<void> {
    this.addSql(`alter table "webhook_delivery_attempts" add "response_headers" jsonb null;`);
    this.addSql(`grant update (response_headers) on webhook_delivery_attempts to agent_email_api;`);
  }
}
