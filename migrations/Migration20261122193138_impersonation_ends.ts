import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/** An impersonation also ends, in what its function says, when the session that began it ends. */
export class Migration20261122193138_impersonation_ends extends Migration {
  override name = 'Migration20261122193138_impersonation_ends';

  override up(): void {
    this.addSql(replaceSqlFunction('find_impersonation'));
  }
}
