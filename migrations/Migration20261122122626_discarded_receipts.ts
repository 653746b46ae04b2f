import { Migration } from '@mikro-orm/migrations';

/** An operator can end the processing of a received message that is lost. */
export class Migration20261122122626_discarded_receipts extends Migration {
  override name = 'Migration20261122122626_discarded_receipts';

  override up(): void {
    this.addSql(`alter table "inbound_receipts" add "discard_reason" text null;`);
    this.addSql(`drop index "inbound_receipts_expired_index";`);
    this.addSql(
      `create index "inbound_receipts_expired_index" on "inbound_receipts" ("processed_at") where "kind" = 'report' or "duplicate_of" is not null or "status" = 'discarded';`,
    );
  }
}
