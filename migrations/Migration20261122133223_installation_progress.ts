import { Migration } from '@mikro-orm/migrations';

/** A counter whose copy in the bucket shows that the database has lost commits. */
export class Migration20261122133223_installation_progress extends Migration {
  override name = 'Migration20261122133223_installation_progress';

  override up(): void {
    this.addSql(
      `alter table "installation" add column "progress" bigint not null default 0, add column "advanced_at" timestamptz(3) null;
       grant update on installation to agent_email_worker`,
    );
  }
}
