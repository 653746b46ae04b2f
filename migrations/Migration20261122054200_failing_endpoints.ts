import { Migration } from '@mikro-orm/migrations';

/** Deliveries to a failing endpoint wait as rows, and one run per endpoint probes it. */
export class Migration20261122054200_failing_endpoints extends Migration {
  override name = 'Migration20261122054200_failing_endpoints';

  override up(): void {
    this.addSql(`alter table "webhook_endpoints" add "holding_since" timestamptz(3) null,
      add "probe_episode" int not null default 0, add "reconciled_at" timestamptz(3) null;`);
    this.addSql(
      `create index "webhook_endpoints_holding_index" on "webhook_endpoints" ("holding_since") where "holding_since" is not null;`,
    );
    this.addSql(`drop index "webhook_deliveries_held_index";`);
    this.addSql(
      `create index "webhook_deliveries_held_index" on "webhook_deliveries" ("held_for", "created_at") where "status" = 'held';`,
    );
    this.addSql(
      `create index "webhook_deliveries_backlog_index" on "webhook_deliveries" ("endpoint_id", "id") where "status" = 'held' and ("held_for" is null or "held_for" = 'endpoint_failing');`,
    );
    this.addSql(
      `create index "webhook_deliveries_requested_index" on "webhook_deliveries" ("endpoint_id", "next_attempt_at") where "status" = 'held' and "next_attempt_at" is not null;`,
    );
  }
}
