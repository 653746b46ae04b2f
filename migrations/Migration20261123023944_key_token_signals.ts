import { Migration } from '@mikro-orm/migrations';

/** A rotation without an overlap, and the deletion of an environment, reach responses that stay open at once. */
export class Migration20261123023944_key_token_signals extends Migration {
  override name = 'Migration20261123023944_key_token_signals';

  override up(): void {
    this.addSql(`drop trigger "signal_api_keys_access" on "api_keys"`);
    this.addSql(`create trigger "signal_api_keys_access" after update on "api_keys" for each row when (old.revoked_at is distinct from new.revoked_at or old.expires_at is distinct from new.expires_at
        or old.token_hash is distinct from new.token_hash or old.previous_token_hash is distinct from new.previous_token_hash
        or old.previous_expires_at is distinct from new.previous_expires_at or old.permissions is distinct from new.permissions
        or old.allowed_cidrs is distinct from new.allowed_cidrs) execute function "signal_access"()`);
    this.addSql(
      `create trigger "signal_environments_access_end" after delete on "environments" for each row execute function "signal_access"()`,
    );
  }
}
