import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/** Lets the API delete the commands that Temporal has accepted, of all organizations, in one statement. */
export class Migration20261123060840_delete_dispatched extends Migration {
  override name = 'Migration20261123060840_delete_dispatched';

  override up(): void {
    this.addSql(replaceSqlFunction('delete_dispatched'));
    this.addSql(`grant delete on "outbox" to "agent_email_lookup";`);
    this.addSql(`grant create on schema public to agent_email_lookup;
      alter function delete_dispatched(bigint[]) owner to agent_email_lookup;
      revoke create on schema public from agent_email_lookup;`);
    this.addSql(`revoke all on function delete_dispatched(bigint[]) from public;
      grant execute on function delete_dispatched(bigint[]) to agent_email_api, agent_email_worker;`);
  }
}
