import { Migration } from '@mikro-orm/migrations';

export class Migration20261121065413_inbound_quality extends Migration {
  override name = 'Migration20261121065413_inbound_quality';

  override up(): void | Promise<void> {
    this.addSql(
      `alter table "inbound_receipts" add "transport_id" text null, add "fingerprint" bytea null, add "duplicate_of" text collate "C" null;`,
    );
    this.addSql(
      `create unique index "inbound_receipts_fingerprint_unique" on "inbound_receipts" ("inbox_id", "fingerprint") where "fingerprint" is not null;`,
    );
    this.addSql(
      `create unique index "inbound_receipts_transport_unique" on "inbound_receipts" ("inbox_id", "transport_id") where "transport_id" is not null;`,
    );

    this.addSql(`alter table "threads" add "send_paused_until" timestamptz(3) null;`);

    this.addSql(`alter table "messages" add "signals" text[] not null default '{}';`);
  }
}
