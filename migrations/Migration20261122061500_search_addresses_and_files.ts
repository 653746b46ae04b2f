import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/** Messages are found by the domains of their addresses and by the names of their files. */
export class Migration20261122061500_search_addresses_and_files extends Migration {
  override name = 'Migration20261122061500_search_addresses_and_files';

  override up(): void {
    for (const name of ['search_document', 'search_filename', 'index_attachments'])
      this.addSql(replaceSqlFunction(name));
    for (const [name, event] of [
      ['attachments_index_added', 'insert'],
      ['attachments_index_moved', 'update'],
    ])
      this.addSql(
        `create trigger "${name}" after ${event} on "attachments" referencing new table as changed for each statement execute function "index_attachments"();`,
      );
    this.addSql(
      `update message_search s set document = search_document(m)
         || array_to_tsvector(coalesce(
              (select array_agg(distinct lexeme) from attachments a, unnest(search_filename(a.filename)) lexeme
               where a.message_id = m.id), '{}'))
       from messages m where m.id = s.message_id;`,
    );
  }
}
