import { Migration } from '@mikro-orm/migrations';

export class Migration20261121080107_provider_verdicts extends Migration {
  override name = 'Migration20261121080107_provider_verdicts';

  override up(): void | Promise<void> {
    this.addSql(`alter table "inbound_receipts" add "verdicts" jsonb null;`);
  }
}
