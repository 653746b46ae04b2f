import { Migration } from '@mikro-orm/migrations';

/** A suppression that a bound credential added applies where the credential was bound, not to the whole organization. */
export class Migration20261122050500_suppression_scopes extends Migration {
  override name = 'Migration20261122050500_suppression_scopes';

  override up(): void {
    this.addSql(`alter table "suppressions" add "scope_id" text collate "C" null;`);
    this.addSql(
      `update "suppressions" set "scope_id" = case when "origin" = 'manual' then coalesce("inbox_id", "env_id", "org_id") else "org_id" end;`,
    );
    this.addSql(`alter table "suppressions" alter column "scope_id" set not null;`);
    this.addSql(`alter table "suppressions" drop constraint "suppressions_org_id_email_unique";`);
    this.addSql(
      `alter table "suppressions" add constraint "suppressions_org_id_email_scope_id_unique" unique ("org_id", "email", "scope_id");`,
    );
  }
}
