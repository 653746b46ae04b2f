import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Scope } from '../identity/scope.ts';

/** Whether the organization's active configuration made the caller's session. Locks it until the transaction ends. */
export async function isOwnSsoSession(
  em: EntityManager,
  { organizationId, member }: Scope,
): Promise<boolean> {
  const [active] = await em.execute<{ id: string }[]>(sql`
    select id from sso_configurations where org_id = ${organizationId} and status = 'active' for update`);
  const { method, ssoConfigurationId } = member?.person ?? {};
  return active !== undefined && method === 'sso' && ssoConfigurationId === active.id;
}
