import { Migration } from '@mikro-orm/migrations';

export class Migration20261121075258_spent_receipts extends Migration {
  override name = 'Migration20261121075258_spent_receipts';

  override up(): void | Promise<void> {
    this.addSql(`alter table "discarded_objects" alter column "org_id" drop not null;`);

    this.addSql(
      `create index "inbound_receipts_spent_index" on "inbound_receipts" ("processed_at") where "kind" = 'report' or "duplicate_of" is not null;`,
    );

    this.addSql(`create index "unattributed_reports_raw_key_index" on "unattributed_reports" ("raw_key");`);
    this.addSql(
      `create index "unattributed_reports_received_at_index" on "unattributed_reports" ("received_at");`,
    );
  }
}
