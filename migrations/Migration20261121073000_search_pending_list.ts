import { Migration } from '@mikro-orm/migrations';

/** New words wait in a list that every search reads; 4 MiB of it, PostgreSQL's default, cost more than the search. */
export class Migration20261121073000_search_pending_list extends Migration {
  override name = 'Migration20261121073000_search_pending_list';

  override up(): void {
    this.addSql(`alter index "message_search_document_index" set (gin_pending_list_limit = 512)`);
  }
}
