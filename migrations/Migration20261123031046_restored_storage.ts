import { Migration } from '@mikro-orm/migrations';

export class Migration20261123031046_restored_storage extends Migration {
  override name = 'Migration20261123031046_restored_storage';

  override up(): void | Promise<void> {
    this.addSql(`alter table "restores" add "storage" text null;`);
    this.addSql(
      `alter table "restores" add constraint "restores_storage" check (storage = ANY (ARRAY['comparing'::text, 'copying'::text, 'complete'::text, 'restored'::text, 'untouched'::text]));`,
    );
  }
}
