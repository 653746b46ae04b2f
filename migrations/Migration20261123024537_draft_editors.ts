import { Migration } from '@mikro-orm/migrations';

export class Migration20261123024537_draft_editors extends Migration {
  override name = 'Migration20261123024537_draft_editors';

  override up(): void | Promise<void> {
    this.addSql(
      `alter table "drafts" add "last_edited_by_kind" text null, add "last_edited_by_id" text collate "C" null;`,
    );
  }
}
