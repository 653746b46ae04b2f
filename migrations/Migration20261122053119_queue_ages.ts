import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/** Lets the API's readiness check see how long the commands of all organizations have waited. */
export class Migration20261122053119_queue_ages extends Migration {
  override name = 'Migration20261122053119_queue_ages';

  override up(): void {
    this.addSql(replaceSqlFunction('oldest_waiting_starts'));
    this.addSql(`create policy "lookup" on "outbox" to "agent_email_lookup" using (true) with check (true);`);
    this.addSql(`grant select on "outbox" to "agent_email_lookup";`);
    this.addSql(`grant create on schema public to agent_email_lookup;
      alter function oldest_waiting_starts() owner to agent_email_lookup;
      revoke create on schema public from agent_email_lookup;`);
    this.addSql(`revoke all on function oldest_waiting_starts() from public;
      grant execute on function oldest_waiting_starts() to agent_email_api, agent_email_worker;`);
  }
}
