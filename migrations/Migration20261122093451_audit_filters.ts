import { Migration } from '@mikro-orm/migrations';

/** The audit log is filtered by action and by type of resource. */
export class Migration20261122093451_audit_filters extends Migration {
  override name = 'Migration20261122093451_audit_filters';

  override up(): void {
    this.addSql(
      `create index "audit_entries_org_id_resource_type_id_index" on "audit_entries" ("org_id", "resource_type", "id");`,
    );
    this.addSql(
      `create index "audit_entries_org_id_action_id_index" on "audit_entries" ("org_id", "action", "id");`,
    );
  }
}
