import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

/** A rotated key keeps its previous token until the overlap ends, and the person behind a key learns of its expiry in time. */
export class Migration20261122084757_key_rotation extends Migration {
  override name = 'Migration20261122084757_key_rotation';

  override up(): void {
    this.addSql(
      `alter table "api_keys" add "previous_token_hash" bytea null, add "previous_last_four" text null, add "previous_expires_at" timestamptz(3) null, add "previous_last_used_at" timestamptz(3) null, add "expiry_notified_at" timestamptz(3) null;`,
    );
    this.addSql(
      `alter table "api_keys" add constraint "api_keys_previous_token_hash_unique" unique ("previous_token_hash");`,
    );
    this.addSql(
      `create index "api_keys_org_id_created_by_user_id_index" on "api_keys" ("org_id", "created_by_user_id");`,
    );
    this.addSql(
      `create index "api_keys_expires_at_index" on "api_keys" ("expires_at") where "revoked_at" is null and "expires_at" is not null`,
    );
    // Runs before the tenant is known, so it sees the rows of every tenant.
    this.addSql(`drop function if exists find_api_key(bytea, text)`);
    this.addSql(replaceSqlFunction('find_api_key'));
    this.addSql(`grant create on schema public to agent_email_lookup;
      alter function find_api_key owner to agent_email_lookup;
      revoke create on schema public from agent_email_lookup;
      revoke all on function find_api_key from public;
      grant execute on function find_api_key to agent_email_api, agent_email_worker`);
  }
}
