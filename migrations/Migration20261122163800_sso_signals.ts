import { Migration } from '@mikro-orm/migrations';

/** Sessions of a single sign-on that is no longer active lose their open streams at once, as after other changes of access. */
export class Migration20261122163800_sso_signals extends Migration {
  override name = 'Migration20261122163800_sso_signals';

  override up(): void {
    this.addSql(
      `create trigger "signal_sso_access" after update on "sso_configurations" for each row when (old.status is distinct from new.status) execute function "signal_access"()`,
    );
    this.addSql(
      `create trigger "signal_sso_access_end" after delete on "sso_configurations" for each row when (old.status = 'active') execute function "signal_access"()`,
    );
  }
}
