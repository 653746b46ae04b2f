import { Migration } from '@mikro-orm/migrations';

/** Staff see which factors a person has, and remove them. They read neither secrets nor codes. */
export class Migration20261122130100_staff_users extends Migration {
  override name = 'Migration20261122130100_staff_users';

  override up(): void {
    this.addSql(
      `grant select (id, user_id, type, name, confirmed_at, last_used_at, created_at), delete on mfa_enrollments to agent_email_staff;
       grant select (user_id), delete on mfa_recovery_codes to agent_email_staff`,
    );
  }
}
