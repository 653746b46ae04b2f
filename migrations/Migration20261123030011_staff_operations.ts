import { Migration } from '@mikro-orm/migrations';

/**
 * Staff list the emails of the service, and send failed ones again. What they do within one organization is a transaction of
 * that organization, which records it in the log of the service, too.
 */
export class Migration20261123030011_staff_operations extends Migration {
  override name = 'Migration20261123030011_staff_operations';

  override up(): void | Promise<void> {
    this.addSql(`alter table "notifications" add "episode" int not null default 1;`);
    this.addSql(
      `create index "notifications_failed_list_index" on "notifications" ("id") where "status" = 'failed';`,
    );
    this.addSql(
      `grant select (id, org_id, user_id, email, template, status, attempts, episode, next_attempt_at, last_error, created_at,
         sent_at), update (status, attempts, episode, next_attempt_at, reconciled_at) on "notifications" to agent_email_staff;
       grant insert on "staff_audit_entries" to agent_email_api`,
    );
  }
}
