import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import { PURGE_INBOX, purgeInboxWorkflowId } from '../../workflows/inboxes/purge-inbox.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { Inbox } from './inbox.entity.ts';

/** Also used by the reconciler when the run of a purge is missing. */
export function buildInboxPurgeStart(
  inbox: Pick<Inbox, 'id' | 'organizationId' | 'environmentId'>,
): StartCommand {
  return {
    workflowType: PURGE_INBOX,
    workflowId: purgeInboxWorkflowId(inbox.id),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.default, fairnessKey: inbox.organizationId },
    input: { inboxId: inbox.id },
    searchAttributes: {
      OrgId: inbox.organizationId,
      EnvId: inbox.environmentId,
      InboxId: inbox.id,
      ResourceId: inbox.id,
      Stage: 'purging',
    },
    summary: `Purge ${inbox.id}`,
  };
}

export interface RequestedPurge {
  organizationId: string;
  /** As text of PostgreSQL, with microseconds. */
  requestedAt: string;
}

/** Returns the purge of an inbox that was requested and has not ended; undefined if there is none. */
export function findRequestedPurge(
  { db }: Pick<Database, 'db'>,
  inboxId: string,
): Promise<RequestedPurge | undefined> {
  return db
    .selectFrom('inboxes')
    .select(['org_id as organizationId', sql<string>`purge_requested_at::text`.as('requestedAt')])
    .where('id', '=', inboxId)
    .where('purge_requested_at', 'is not', null)
    .where('purged_at', 'is', null)
    .executeTakeFirst();
}

/** Records that all messages of the inbox have been deleted. */
export async function markInboxPurged({ db }: Pick<Database, 'db'>, inboxId: string): Promise<void> {
  await db.updateTable('inboxes').set({ purged_at: sql`now()` }).where('id', '=', inboxId).execute();
}

/** Purges whose workflow run is missing. */
export function overduePurges({ db }: Database): OverdueSource {
  return {
    name: 'purges',
    async take(limit) {
      const overdue = db
        .selectFrom('inboxes')
        .select('id')
        .where('purge_requested_at', '<', minutesAgo(2))
        .where('purged_at', 'is', null);
      const rows = await db
        .updateTable('inboxes')
        .set(RECONCILED)
        .where('id', '=', lockOverdue(overdue, { limit }))
        .returning(['id', 'org_id as organizationId', 'env_id as environmentId'])
        .execute();
      return rows.map((row) => ({ start: buildInboxPurgeStart(row), whenStopped: 'restart' as const }));
    },
  };
}
