import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';

/** How often an impersonation called an operation. */
export interface OperationCount {
  operation: string;
  isChange: boolean;
  calls: number;
}

/** By impersonation, the most frequent first. */
export async function findOperations(
  em: EntityManager,
  impersonationIds: readonly string[],
): Promise<Map<string, OperationCount[]>> {
  if (impersonationIds.length === 0) return new Map();
  const rows = await em.execute<(OperationCount & { id: string })[]>(sql`
    select impersonation_id as id, operation, is_change as "isChange", sum(calls)::int as calls
    from impersonated_operations where impersonation_id in (${[...impersonationIds]})
    group by impersonation_id, operation, is_change order by sum(calls) desc, operation`);
  const counts = Map.groupBy(rows, ({ id }) => id);
  return new Map([...counts].map(([id, found]) => [id, found.map(({ id: _id, ...operation }) => operation)]));
}

/** Resources that the entry of the audit logs names. */
const MAX_NAMED_RESOURCES = 100;

/**
 * Ends an impersonation if it has not ended, and records in both logs what it called, once. The caller has locked it.
 */
export async function reportEnd(em: EntityManager, impersonationId: string): Promise<void> {
  const [ended] = await em.execute<EndedImpersonation[]>(sql`
    update impersonations set reported_at = now(),
      ended_at = case when expires_at > now() then coalesce(ended_at, now()) else ended_at end
    where id = ${impersonationId} and reported_at is null
    returning org_id as "organizationId", staff_id as "staffId", staff_session_id as "staffSessionId",
      allows_write as "allowsWrite", reason, ip, request_id as "requestId"`);
  if (!ended) return;
  const operations = (await findOperations(em, [impersonationId])).get(impersonationId) ?? [];
  const resources = await em.execute<{ resourceId: string }[]>(sql`
    select distinct resource_id as "resourceId" from impersonated_operations
    where impersonation_id = ${impersonationId} and resource_id <> '' order by resource_id
    limit ${MAX_NAMED_RESOURCES + 1}`);
  const callsOf = (isChange: boolean) =>
    Object.fromEntries(
      operations
        .filter((found) => found.isChange === isChange)
        .map(({ operation, calls }) => [operation, calls]),
    );
  const { organizationId, staffId, staffSessionId: sessionId, allowsWrite, reason, ip, requestId } = ended;
  await recordStaffAudit(
    em,
    { staffId, person: { sessionId }, ip, requestId },
    {
      action: 'impersonation.ended',
      resourceType: 'impersonation',
      resourceId: impersonationId,
      organizationIds: [organizationId],
      reason,
      details: {
        allows_write: allowsWrite,
        reads: callsOf(false),
        changes: callsOf(true),
        resources: resources.slice(0, MAX_NAMED_RESOURCES).map(({ resourceId }) => resourceId),
        more_resources: resources.length > MAX_NAMED_RESOURCES,
      },
    },
  );
}

interface EndedImpersonation {
  organizationId: string;
  staffId: string;
  staffSessionId: string;
  allowsWrite: boolean;
  reason: string;
  ip: string;
  requestId: string;
}

const BATCH_SIZE = 100;

/**
 * Ends the impersonations of a staff member who loses the role, or the role for writing, in the caller's transaction: they do
 * not come back with it.
 */
export async function endImpersonationsOf(
  em: EntityManager,
  staffId: string,
  { onlyWriting }: { onlyWriting: boolean },
): Promise<void> {
  const open = await em.execute<{ id: string }[]>(sql`
    select id from impersonations
    where staff_id = ${staffId} and reported_at is null and (allows_write or not ${onlyWriting}::boolean)
    order by id for update`);
  for (const { id } of open) await reportEnd(em, id);
}

/**
 * Sweep: records the end of impersonations for which one of the conditions of `find_impersonation` no longer holds. They do
 * not come back when it holds again. Returns their number.
 */
export function settleImpersonations(database: Database): Promise<number> {
  return database.systemTransaction(async ({ em }) => {
    const ended = await em.execute<{ id: string }[]>(sql`
      select id from impersonations i
      where reported_at is null and (
        ended_at is not null or expires_at <= now()
        or not exists (
          select from sessions s join users u on u.id = s.user_id and u.deleted_at is null and u.status = 'active'
          where s.id = i.staff_session_id and s.revoked_at is null and s.expires_at > now()
            and s.authenticated_at > now() - interval '12 hours')
        or exists (
          select from organizations o left join organization_policies p on p.org_id = o.id
          where o.id = i.org_id and (o.deleted_at is not null
            or p.support_access = 'ask' and coalesce(p.support_access_until, '-infinity') <= now()))
        or not exists (
          select from staff_members m where m.user_id = i.staff_id and (m.role = 'admin' or not i.allows_write)))
      order by id limit ${BATCH_SIZE} for update of i skip locked`);
    for (const { id } of ended) await reportEnd(em, id);
    return ended.length;
  });
}
