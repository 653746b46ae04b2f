import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import {
  SETTLE_HELD_WORK,
  type SuspensionRun,
  settleSuspensionWorkflowId,
} from '../../workflows/suspensions/settle-held-work.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { Suspension } from './suspension.entity.ts';

type StartedSuspension = Pick<
  Suspension,
  'id' | 'organizationId' | 'targetType' | 'targetId' | 'reason' | 'liftedAt'
>;

/** Starts the run that rejects or releases the held work after a suspension, or its end. */
export function buildSuspensionStart(suspension: StartedSuspension): StartCommand {
  const { id, organizationId, targetId, targetType, reason } = suspension;
  const change = suspension.liftedAt === null ? 'suspended' : 'reinstated';
  return {
    workflowType: SETTLE_HELD_WORK,
    workflowId: settleSuspensionWorkflowId(id, change),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.urgent, fairnessKey: organizationId },
    input: { organizationId, suspension: { id, change } },
    searchAttributes: {
      OrgId: organizationId,
      ...(targetType === 'environment' ? { EnvId: targetId } : {}),
      ...(targetType === 'inbox' ? { InboxId: targetId } : {}),
      ResourceId: targetId,
      RelatedId: id,
      Stage: 'rejecting',
    },
    summary: `${targetId} ${change} for ${reason}`,
  };
}

/** Records that the held work is settled, unless the suspension has been lifted since the run began. */
export async function markSettled(database: Database, { id, change }: SuspensionRun): Promise<void> {
  await database.db
    .updateTable('suspensions')
    .set({ settled_at: sql`now()` })
    .where('id', '=', id)
    .where('settled_at', 'is', null)
    .where('lifted_at', change === 'suspended' ? 'is' : 'is not', null)
    .execute();
}

/**
 * Suspensions whose run is missing. A run that an operator stopped starts again, because held work would otherwise wait
 * forever.
 */
export function overdueSuspensions({ db }: Database): OverdueSource {
  return {
    name: 'suspensions',
    async take(limit) {
      const overdue = db
        .selectFrom('suspensions')
        .select('id')
        .where('settled_at', 'is', null)
        .where('changed_at', '<', minutesAgo(2));
      const rows = await db
        .updateTable('suspensions')
        .set(RECONCILED)
        .where('id', '=', lockOverdue(overdue, { limit }))
        .returning([
          'id',
          'org_id as organizationId',
          'target_type as targetType',
          'target_id as targetId',
          'reason',
          'lifted_at as liftedAt',
        ])
        .execute();
      return rows.map((row) => ({ start: buildSuspensionStart(row), whenStopped: 'restart' as const }));
    },
  };
}
