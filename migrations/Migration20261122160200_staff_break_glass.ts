import { Migration } from '@mikro-orm/migrations';

/** Staff who suspend a person or reassign an owner must not leave an organization without a way past its single sign-on. */
export class Migration20261122160200_staff_break_glass extends Migration {
  override name = 'Migration20261122160200_staff_break_glass';

  override up(): void {
    this.addSql('grant execute on function lacks_break_glass_owner to agent_email_staff');
  }
}
