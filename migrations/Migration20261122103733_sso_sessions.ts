import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/** A session of single sign-on enters the organization that made it, and changes no account that is more than its own. */
export class Migration20261122103733_sso_sessions extends Migration {
  override name = 'Migration20261122103733_sso_sessions';

  override up(): void {
    this.addSql(`grant select (user_id, type, confirmed_at) on mfa_enrollments to agent_email_lookup;
      grant select (user_id) on oauth_identities to agent_email_lookup;
      grant select (org_id, configuration_id, user_id) on sso_identities to agent_email_api`);
    this.addSql('drop function if exists find_session(bytea, text, text, text)');
    this.addSql(replaceSqlFunction('find_session'));
    this.addSql(`grant create on schema public to agent_email_lookup;
      alter function find_session owner to agent_email_lookup;
      revoke create on schema public from agent_email_lookup;
      revoke all on function find_session from public;
      grant execute on function find_session to agent_email_api, agent_email_worker`);
  }
}
