import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

const TABLES = [
  'inboxes',
  'threads',
  'drafts',
  'attachments',
  'events',
  'webhook_endpoints',
  'webhook_bulk_jobs',
];

/** Credentials of a whole organization reach a resource by its id in whichever environment it is. */
export class Migration20261122085506_resource_environments extends Migration {
  override name = 'Migration20261122085506_resource_environments';

  override up(): void {
    for (const table of [...TABLES, 'webhook_deliveries'])
      this.addSql(
        `create policy "lookup" on "${table}" to "agent_email_lookup" using (true) with check (true);`,
      );
    for (const table of TABLES)
      this.addSql(`grant select (id, org_id, env_id) on "${table}" to agent_email_lookup`);
    this.addSql('grant select (id, org_id, endpoint_id) on webhook_deliveries to agent_email_lookup');
    this.addSql(replaceSqlFunction('find_environment'));
    this.addSql('drop function if exists find_api_key(bytea, text)');
    this.addSql('drop function if exists find_session(bytea, text, text)');
    for (const name of ['find_api_key', 'find_session']) this.addSql(replaceSqlFunction(name));
    this.addSql(`grant create on schema public to agent_email_lookup;
      alter function find_api_key owner to agent_email_lookup;
      alter function find_session owner to agent_email_lookup;
      revoke create on schema public from agent_email_lookup;
      revoke all on function find_environment, find_api_key, find_session from public;
      grant execute on function find_environment to agent_email_lookup;
      grant execute on function find_api_key, find_session to agent_email_api, agent_email_worker`);
  }
}
