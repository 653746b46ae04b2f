import { Migration } from '@mikro-orm/migrations';

export class Migration20261124012917_draft_creators extends Migration {
  override name = 'Migration20261124012917_draft_creators';

  override up(): void | Promise<void> {
    this.addSql(
      `alter table "drafts" add "created_by_kind" text null, add "created_by_id" text collate "C" null;`,
    );
  }
}
