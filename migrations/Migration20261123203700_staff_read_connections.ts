import { Migration } from '@mikro-orm/migrations';

export class Migration20261123203700_staff_read_connections extends Migration {
  override name = 'Migration20261123203700_staff_read_connections';

  override up(): void | Promise<void> {
    this.addSql(
      `create policy "staff" on "connections" to "agent_email_staff" using (true) with check (true);`,
    );
    this.addSql(`grant select (client_name, id, org_id) on "connections" to agent_email_staff;`);
  }
}
