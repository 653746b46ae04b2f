import { type ExpressionBuilder, type SqlBool, sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';

/** How often an impersonation called an operation. */
export interface OperationCount {
  operation: string;
  isChange: boolean;
  calls: number;
}

/** Operation counts by impersonation, most frequent first. */
export async function findOperations(
  db: Db,
  impersonationIds: readonly string[],
): Promise<Map<string, OperationCount[]>> {
  if (impersonationIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('impersonated_operations')
    .select((eb) => [
      'impersonation_id as id',
      'operation',
      'is_change as isChange',
      sql<number>`${eb.fn.sum('calls')}::int`.as('calls'),
    ])
    .where('impersonation_id', '=', anyOf(impersonationIds))
    .groupBy(['impersonation_id', 'operation', 'is_change'])
    .orderBy((eb) => eb.fn.sum('calls'), 'desc')
    .orderBy('operation')
    .execute();
  const counts = Map.groupBy(rows, ({ id }) => id);
  return new Map([...counts].map(([id, found]) => [id, found.map(({ id: _id, ...operation }) => operation)]));
}

/** Maximum number of resources named in an audit entry. */
const MAX_NAMED_RESOURCES = 100;

/** Ends an impersonation if it has not ended, and records its calls in both logs, once. The caller has locked it. */
export async function reportEnd(db: Db, impersonationId: string): Promise<void> {
  const ended = await db
    .updateTable('impersonations')
    .set({
      reported_at: sql<Date>`now()`,
      ended_at: sql<Date | null>`case when expires_at > now() then coalesce(ended_at, now()) else ended_at end`,
    })
    .where('id', '=', impersonationId)
    .where('reported_at', 'is', null)
    .returning([
      'org_id as organizationId',
      'staff_id as staffId',
      'staff_session_id as staffSessionId',
      'allows_write as allowsWrite',
      'reason',
      'ip',
      'request_id as requestId',
    ])
    .executeTakeFirst();
  if (!ended) return;
  const operations = (await findOperations(db, [impersonationId])).get(impersonationId) ?? [];
  const resources = await db
    .selectFrom('impersonated_operations')
    .select('resource_id as resourceId')
    .distinct()
    .where('impersonation_id', '=', impersonationId)
    .where('resource_id', '<>', '')
    .orderBy('resource_id')
    .limit(MAX_NAMED_RESOURCES + 1)
    .execute();
  const callsOf = (isChange: boolean) =>
    Object.fromEntries(
      operations
        .filter((found) => found.isChange === isChange)
        .map(({ operation, calls }) => [operation, calls]),
    );
  const { organizationId, staffId, staffSessionId: sessionId, allowsWrite, reason, ip, requestId } = ended;
  await recordStaffAudit(
    db,
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

const BATCH_SIZE = 100;

/**
 * Ends the impersonations of a staff member who loses the role, or the role for writing, in the caller's transaction. They
 * do not resume if the role returns.
 */
export async function endImpersonationsOf(
  db: Db,
  staffId: string,
  { onlyWriting }: { onlyWriting: boolean },
): Promise<void> {
  const unreported = db
    .selectFrom('impersonations')
    .select('id')
    .where('staff_id', '=', staffId)
    .where('reported_at', 'is', null)
    .orderBy('id')
    .forUpdate();
  const open = await (onlyWriting ? unreported.where('allows_write', '=', true) : unreported).execute();
  for (const { id } of open) await reportEnd(db, id);
}

/**
 * Sweep: records the end of impersonations for which a condition of `find_impersonation` no longer holds. They do not resume
 * if it holds again. Returns their number.
 */
export function settleImpersonations(database: Database): Promise<number> {
  return database.systemTransaction(async ({ db }) => {
    const ended = await findEnded(db);
    for (const { id } of ended) await reportEnd(db, id);
    return ended.length;
  });
}

function findEnded(db: Db): Promise<{ id: string }[]> {
  return db
    .selectFrom('impersonations')
    .select('impersonations.id')
    .where('impersonations.reported_at', 'is', null)
    .where((eb) =>
      eb.or([
        eb('impersonations.ended_at', 'is not', null),
        eb('impersonations.expires_at', '<=', sql<Date>`now()`),
        eb.not(eb.exists(findLiveSession(eb))),
        eb.exists(findOrganizationWithoutAccess(eb)),
        eb.not(
          eb.exists(
            eb
              .selectFrom('staff_members')
              .select('staff_members.user_id')
              .whereRef('staff_members.user_id', '=', 'impersonations.staff_id')
              .where((member) =>
                member.or([
                  member('staff_members.role', '=', 'admin'),
                  member('impersonations.allows_write', '=', false),
                ]),
              ),
          ),
        ),
      ]),
    )
    .orderBy('impersonations.id')
    .limit(BATCH_SIZE)
    .forUpdate('impersonations')
    .skipLocked()
    .execute();
}

function findLiveSession(eb: ExpressionBuilder<Tables, 'impersonations'>) {
  return eb
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .select('sessions.id')
    .whereRef('sessions.id', '=', 'impersonations.staff_session_id')
    .where('sessions.revoked_at', 'is', null)
    .where('sessions.expires_at', '>', sql<Date>`now()`)
    .where('sessions.authenticated_at', '>', sql<Date>`now() - interval '12 hours'`)
    .where('users.deleted_at', 'is', null)
    .where('users.status', '=', 'active');
}

/** Finds the organization if it is closed, or requires a consent that it has not given. */
function findOrganizationWithoutAccess(eb: ExpressionBuilder<Tables, 'impersonations'>) {
  return eb
    .selectFrom('organizations')
    .leftJoin('organization_policies', 'organization_policies.org_id', 'organizations.id')
    .select('organizations.id')
    .whereRef('organizations.id', '=', 'impersonations.org_id')
    .where((organization) =>
      organization.or([
        organization('organizations.deleted_at', 'is not', null),
        organization.and([
          organization('organization_policies.support_access', '=', 'ask'),
          sql<SqlBool>`coalesce(${organization.ref('organization_policies.support_access_until')}, '-infinity') <= now()`,
        ]),
      ]),
    );
}
