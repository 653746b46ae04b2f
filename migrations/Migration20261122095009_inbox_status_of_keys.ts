import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/** A key of a suspended inbox can read but not change anything. */
export class Migration20261122095009_inbox_status_of_keys extends Migration {
  override name = 'Migration20261122095009_inbox_status_of_keys';

  override up(): void {
    this.addSql('grant select (status) on inboxes to agent_email_lookup');
    this.addSql('drop function if exists find_api_key(bytea, text, text)');
    this.addSql(replaceSqlFunction('find_api_key'));
    this.addSql(`grant create on schema public to agent_email_lookup;
      alter function find_api_key owner to agent_email_lookup;
      revoke create on schema public from agent_email_lookup;
      revoke all on function find_api_key from public;
      grant execute on function find_api_key to agent_email_api, agent_email_worker`);
  }
}
