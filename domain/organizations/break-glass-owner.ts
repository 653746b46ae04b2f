import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { AppError } from '../../platform/errors.ts';

/**
 * Changes of owners and policies wait for each other. `no key` lets other transactions insert rows that refer to the
 * organization: a key that a member creates would otherwise be a deadlock with their removal.
 */
export async function lockOrganization(em: EntityManager, organizationId: string): Promise<void> {
  await em.execute(sql`select from organizations where id = ${organizationId} for no key update`);
}

/**
 * Requires, after a change of owners, factors or policies, that an owner could repair the single sign-on that the
 * organization enforces. The caller has locked the organization: two such changes must see each other.
 *
 * @throws AppError `conflict`.
 */
export async function requireBreakGlassOwner(em: EntityManager, organizationId: string): Promise<void> {
  const [found] = await em.execute<{ name: string }[]>(sql`
    select name from organizations where id = ${organizationId} and lacks_break_glass_owner(id)`);
  if (!found) return;
  throw new AppError('conflict', {
    detail: `${found.name} requires single sign-on, and no owner could get in if the identity provider fails.`,
    fix: 'First let another owner add a passkey, or a password and a second factor; or turn enforce_sso off.',
    extensions: { policy: 'enforce_sso', organization_id: organizationId },
  });
}
