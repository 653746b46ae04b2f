import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Db } from '../../platform/database/tables.ts';

/** Closes an open organization. Returns its name; undefined if it is already closed or does not exist. */
export async function closeOrganization(
  db: Db,
  organizationId: string,
  deletedAt: Date,
): Promise<string | undefined> {
  const closed = await db
    .updateTable('organizations')
    .set({ deleted_at: deletedAt, updated_at: deletedAt })
    .where('id', '=', organizationId)
    .where('deleted_at', 'is', null)
    .returning('name')
    .executeTakeFirst();
  return closed?.name;
}

/** Opens closed organizations again. The caller has ended their deletions as recovered. */
export async function reopenOrganizations(db: Db, organizationIds: readonly string[]): Promise<void> {
  await db
    .updateTable('organizations')
    .set({ deleted_at: null, updated_at: sql`now()` })
    .where('id', '=', anyOf(organizationIds))
    .execute();
}

/**
 * Locks the organizations of a person, in a fixed order. Two owners who leave at the same time then see each other's change.
 */
export async function lockOrganizationsOf(db: Db, userId: string): Promise<void> {
  await db
    .selectFrom('organizations')
    .select('id')
    .where('id', 'in', (eb) => eb.selectFrom('members').select('org_id').where('user_id', '=', userId))
    .orderBy('id')
    .forUpdate()
    .execute();
}

export interface OrganizationOfPerson {
  id: string;
  name: string;
  /** Number of other members whose account is not deleted. */
  otherMembers: number;
  /** Number of other owners who can sign in. */
  otherOwners: number;
  isOwner: boolean;
}

/** Finds the open organizations of a person, and counts their other members. */
export function findOrganizationsOf(db: Db, userId: string): Promise<OrganizationOfPerson[]> {
  return db
    .selectFrom('members as m')
    .innerJoin('organizations as o', (join) =>
      join.onRef('o.id', '=', 'm.org_id').on('o.deleted_at', 'is', null),
    )
    .leftJoin('members as other', (join) =>
      join.onRef('other.org_id', '=', 'm.org_id').onRef('other.user_id', '<>', 'm.user_id'),
    )
    .leftJoin('users as u', (join) => join.onRef('u.id', '=', 'other.user_id').on('u.deleted_at', 'is', null))
    .select((eb) => [
      'o.id',
      'o.name',
      eb('m.role', '=', 'owner').$castTo<boolean>().as('isOwner'),
      eb.fn.count<number>('u.id').as('otherMembers'),
      eb.fn
        .count<number>('u.id')
        .filterWhere('other.role', '=', 'owner')
        .filterWhere('u.status', '=', 'active')
        .as('otherOwners'),
    ])
    .where('m.user_id', '=', userId)
    .groupBy(['o.id', 'm.role'])
    .orderBy('o.id')
    .execute();
}
