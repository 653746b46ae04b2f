import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

export class Migration20261123171259_attachment_text extends Migration {
  override name = 'Migration20261123171259_attachment_text';

  override up(): void | Promise<void> {
    this.addSql(`alter table "attachments" add "text_key" text null;`);
    this.addSql(
      `create index "attachments_text_index" on "attachments" ("text_key") where "text_key" is not null;`,
    );
    this.addSql(replaceSqlFunction('release_attachment_object'));
  }
}
