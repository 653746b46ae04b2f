import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/** Environments have slugs, so that they can be renamed; the one called "production" is the default. */
export class Migration20261122091208_environment_slugs extends Migration {
  override name = 'Migration20261122091208_environment_slugs';

  override up(): void {
    this.addSql(`alter table "environments" add "slug" text null;`);
    this.addSql(`update environments set slug = name;`);
    this.addSql(`alter table "environments" alter column "slug" set not null;`);
    this.addSql(
      `alter table "environments" add constraint "environments_org_id_slug_unique" unique ("org_id", "slug");`,
    );
    this.addSql(replaceSqlFunction('find_api_key'));
    this.addSql(replaceSqlFunction('find_session'));
    this.addSql(`grant select, insert, update, delete on environments to agent_email_api;
      grant select (status, deleted_at) on users to agent_email_api`);
  }
}
