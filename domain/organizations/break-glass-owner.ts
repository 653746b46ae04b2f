import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';

/**
 * Serializes changes of owners and policies. `no key` lets other transactions insert rows that refer to the organization;
 * otherwise a key that a member creates could deadlock with the removal of the member.
 */
export async function lockOrganization(db: Db, organizationId: string): Promise<void> {
  await db
    .selectFrom('organizations')
    .select('id')
    .where('id', '=', organizationId)
    .forNoKeyUpdate()
    .execute();
}

const LACKS_BREAK_GLASS_OWNER = sql<boolean>`lacks_break_glass_owner(organizations.id)`;

/**
 * Requires, after a change of owners, factors or policies, that an owner could repair the single sign-on that the
 * organization enforces. The caller has locked the organization, so that two such changes see each other.
 *
 * @throws AppError `conflict`.
 */
export async function requireBreakGlassOwner(db: Db, organizationId: string): Promise<void> {
  const found = await db
    .selectFrom('organizations')
    .select('name')
    .where('id', '=', organizationId)
    .where(LACKS_BREAK_GLASS_OWNER)
    .executeTakeFirst();
  if (!found) return;
  throw new AppError('conflict', {
    detail: `${found.name} requires single sign-on, and no owner could get in if the identity provider fails.`,
    fix: 'First let another owner add a passkey, or a password and a second factor; or stop requiring single sign-on (enforce_sso).',
    extensions: { policy: 'enforce_sso', org_id: organizationId },
  });
}

/**
 * Runs a change by staff that may leave one of the organizations without an owner who could repair single sign-on. The
 * caller has locked the organizations. Those that had no such owner before do not count.
 *
 * @param isAccepted whether staff accept this, for example because the account is compromised.
 * @returns the result, and the ids of the organizations that are left without such an owner.
 * @throws AppError `conflict` if there are any and staff have not accepted it.
 */
export async function keepBreakGlassOwners<Result>(
  db: Db,
  { organizationIds, isAccepted }: { organizationIds: readonly string[]; isAccepted: boolean },
  work: () => Promise<Result>,
): Promise<{ result: Result; left: string[] }> {
  const before = await findLacking(db, organizationIds);
  const result = await work();
  const left = (await findLacking(db, organizationIds)).filter(
    ({ id }) => !before.some((lacking) => lacking.id === id),
  );
  const [first] = left;
  if (first && !isAccepted)
    throw new AppError('conflict', {
      detail: `${left.map(({ name }) => name).join(', ')}: requires single sign-on, and no owner could get in if the identity provider fails.`,
      fix: 'First let another owner add a passkey, or a password and a second factor, or an owner stop requiring single sign-on (enforce_sso). If it is urgent, for example because the account is compromised, accept that (leave_without_break_glass).',
      extensions: { policy: 'enforce_sso', org_id: first.id },
    });
  return { result, left: left.map(({ id }) => id) };
}

async function findLacking(
  db: Db,
  organizationIds: readonly string[],
): Promise<{ id: string; name: string }[]> {
  return db
    .selectFrom('organizations')
    .select(['id', 'name'])
    .where('id', '=', anyOf(organizationIds))
    .where('deleted_at', 'is', null)
    .where(LACKS_BREAK_GLASS_OWNER)
    .orderBy('id')
    .execute();
}
