import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';

/** Closes an open organization. Returns its name; undefined if it is closed already or does not exist. */
export async function closeOrganization(
  em: EntityManager,
  organizationId: string,
  deletedAt: Date,
): Promise<string | undefined> {
  const [closed] = await em.execute<{ name: string }[]>(sql`
    update organizations set deleted_at = ${deletedAt}, updated_at = ${deletedAt}
    where id = ${organizationId} and deleted_at is null returning name`);
  return closed?.name;
}

/** Opens closed organizations again. The caller has ended their deletions as recovered. */
export async function reopenOrganizations(
  em: EntityManager,
  organizationIds: readonly string[],
): Promise<void> {
  if (organizationIds.length === 0) return;
  await em.execute(sql`
    update organizations set deleted_at = null, updated_at = now() where id in (${[...organizationIds]})`);
}

/** Locks the organizations of a person, in a fixed order: two owners who leave at the same time see each other's change. */
export async function lockOrganizationsOf(em: EntityManager, userId: string): Promise<void> {
  await em.execute(sql`
    select from organizations where id in (select org_id from members where user_id = ${userId})
    order by id for update`);
}

export interface LedOrganization {
  id: string;
  name: string;
  /** Members with an account that is not deleted, without the person. */
  otherMembers: number;
  /** Of these, the owners who can sign in. */
  otherOwners: number;
  isOwner: boolean;
}

/** The open organizations of a person, with their other living members. */
export function findOrganizationsOf(em: EntityManager, userId: string): Promise<LedOrganization[]> {
  return em.execute<LedOrganization[]>(sql`
    select o.id, o.name, m.role = 'owner' as "isOwner", count(u.id)::int as "otherMembers",
      count(u.id) filter (where other.role = 'owner' and u.status = 'active')::int as "otherOwners"
    from members m join organizations o on o.id = m.org_id and o.deleted_at is null
      left join members other on other.org_id = m.org_id and other.user_id <> m.user_id
      left join users u on u.id = other.user_id and u.deleted_at is null
    where m.user_id = ${userId} group by o.id, m.role order by o.id`);
}
