import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/** The function also returns the client of the connection: the CLI's connections work at `/api/v1`. */
export class Migration20261123221500_find_connection_client extends Migration {
  override name = 'Migration20261123221500_find_connection_client';

  override up(): void {
    this.addSql('drop function if exists find_connection(bytea, text, text);');
    this.addSql(replaceSqlFunction('find_connection'));
    this.addSql(`grant create on schema public to agent_email_lookup;`);
    this.addSql(`alter function find_connection owner to agent_email_lookup;`);
    this.addSql(`revoke create on schema public from agent_email_lookup;`);
    this.addSql(`revoke all on function find_connection from public;`);
    this.addSql(`grant execute on function find_connection to agent_email_api;`);
  }
}
