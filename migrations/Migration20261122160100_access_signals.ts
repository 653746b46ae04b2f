import { Migration } from '@mikro-orm/migrations';
import { replaceSqlFunction } from '../platform/database/sql-functions.ts';

const TRIGGERS = [
  `create trigger "signal_organizations_access" after update on "organizations" for each row when (old.status is distinct from new.status or old.deleted_at is distinct from new.deleted_at) execute function "signal_access"()`,
  `create trigger "signal_environments_access" after update on "environments" for each row when (old.status is distinct from new.status) execute function "signal_access"()`,
  `create trigger "signal_inboxes_access" after update on "inboxes" for each row when (old.status is distinct from new.status) execute function "signal_access"()`,
  `create trigger "signal_api_keys_access" after update on "api_keys" for each row when (old.revoked_at is distinct from new.revoked_at or old.expires_at is distinct from new.expires_at
        or old.previous_expires_at is distinct from new.previous_expires_at or old.permissions is distinct from new.permissions
        or old.allowed_cidrs is distinct from new.allowed_cidrs) execute function "signal_access"()`,
  `create trigger "signal_sessions_access" after update on "sessions" for each row when (old.revoked_at is distinct from new.revoked_at) execute function "signal_access"()`,
  `create trigger "signal_sessions_access_end" after delete on "sessions" for each row execute function "signal_access"()`,
  `create trigger "signal_users_access" after update on "users" for each row when (old.status is distinct from new.status or old.deleted_at is distinct from new.deleted_at) execute function "signal_access"()`,
  `create trigger "signal_members_access" after update on "members" for each row when (old.role is distinct from new.role) execute function "signal_access"()`,
  `create trigger "signal_members_access_end" after delete on "members" for each row execute function "signal_access"()`,
  `create trigger "signal_impersonations_access" after update on "impersonations" for each row when (old.ended_at is distinct from new.ended_at) execute function "signal_access"()`,
  `create trigger "signal_staff_members_access" after update on "staff_members" for each row when (old.role is distinct from new.role) execute function "signal_access"()`,
  `create trigger "signal_staff_members_access_end" after delete on "staff_members" for each row execute function "signal_access"()`,
  `create trigger "signal_organization_policies_access_begin" after insert on "organization_policies" for each row execute function "signal_access"()`,
  `create trigger "signal_organization_policies_access" after update on "organization_policies" for each row execute function "signal_access"()`,
];

/** Changes of access reach responses that stay open at once, not at their next heartbeat. */
export class Migration20261122160100_access_signals extends Migration {
  override name = 'Migration20261122160100_access_signals';

  override up(): void {
    this.addSql(replaceSqlFunction('signal_access'));
    for (const trigger of TRIGGERS) this.addSql(trigger);
  }
}
