import { Migration } from '@mikro-orm/migrations';

export class Migration20261121080039_event_positions extends Migration {
  override name = 'Migration20261121080039_event_positions';

  override up(): void | Promise<void> {
    this.addSql(`alter table "events" add "transaction_id" xid8 not null default pg_current_xact_id();`);
    this.addSql(
      `create index "events_env_id_transaction_id_id_index" on "events" ("env_id", "transaction_id", "id");`,
    );
    this.addSql(
      `create index "events_env_id_type_transaction_id_id_index" on "events" ("env_id", "type", "transaction_id", "id");`,
    );
    this.addSql(
      `create index "events_inbox_index" on "events" ("inbox_id", "transaction_id", "id") where "inbox_id" is not null;`,
    );
    this.addSql(
      `create index "events_organization_index" on "events" ("org_id", "transaction_id", "id") where "inbox_id" is null;`,
    );
  }
}
