import { Migration } from '@mikro-orm/migrations';

/** Staff who reassign the owner take from the keys of former owners what only owners may do. */
export class Migration20261122135355_limit_keys extends Migration {
  override name = 'Migration20261122135355_limit_keys';

  override up(): void {
    this.addSql('grant update (permissions) on api_keys to agent_email_staff');
  }
}
