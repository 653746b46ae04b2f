import { Migration } from '@mikro-orm/migrations';

/** Lets staff see how many recipients of a send wait for what: numbers and statuses, neither addresses nor content. */
export class Migration20261122194541_staff_send_outcomes extends Migration {
  override name = 'Migration20261122194541_staff_send_outcomes';

  override up(): void {
    this.addSql(
      `create policy "staff" on "send_attempts" to "agent_email_staff" using (true) with check (true);`,
    );
    this.addSql(
      `create policy "staff" on "message_recipients" to "agent_email_staff" using (true) with check (true);`,
    );
    this.addSql(`grant select (message_id, position, state) on "send_attempts" to agent_email_staff;
      grant select (message_id, position, status) on "message_recipients" to agent_email_staff`);
  }
}
