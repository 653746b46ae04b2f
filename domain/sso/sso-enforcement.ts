import type { Db } from '../../platform/database/tables.ts';
import type { Scope } from '../identity/scope.ts';

/** Whether the organization's active configuration made the caller's session. Locks it until the transaction ends. */
export async function isOwnSsoSession(db: Db, { organizationId, member }: Scope): Promise<boolean> {
  const active = await db
    .selectFrom('sso_configurations')
    .select('id')
    .where('org_id', '=', organizationId)
    .where('status', '=', 'active')
    .forUpdate()
    .executeTakeFirst();
  const { method, ssoConfigurationId } = member?.person ?? {};
  return active !== undefined && method === 'sso' && ssoConfigurationId === active.id;
}
