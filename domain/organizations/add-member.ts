import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { MemberRole } from '../identity/roles.ts';

/**
 * Makes a person a member, in the caller's transaction. Returns false if they are one already; their role then stays.
 */
export async function addMember(
  em: EntityManager,
  { organizationId, userId, role }: { organizationId: string; userId: string; role: MemberRole },
): Promise<boolean> {
  const added = await em.execute<object[]>(sql`
    insert into members (org_id, user_id, role, created_at) values (${organizationId}, ${userId}, ${role}, now())
    on conflict do nothing returning user_id`);
  return added.length > 0;
}

export async function isMember(em: EntityManager, organizationId: string, userId: string): Promise<boolean> {
  const rows = await em.execute<object[]>(
    sql`select from members where org_id = ${organizationId} and user_id = ${userId}`,
  );
  return rows.length > 0;
}
