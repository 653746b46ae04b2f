import { sql } from '@mikro-orm/core';
import type { Client } from '@temporalio/client';
import type { Database } from '../../platform/database/database.ts';
import { createProgressMarker } from '../../platform/installation/progress-marker.ts';
import { beginReconciliation, endReconciliation } from '../../platform/installation/restore-rows.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { findActivitySince } from '../../platform/outbox/run-history.ts';
import type { WorkflowGateway } from '../../platform/outbox/workflow-gateway.ts';
import type { Storage } from '../../platform/storage.ts';
import { sendScheduledDraftWorkflowId } from '../../workflows/drafts/send-scheduled-draft.contract.ts';
import { sendMessageWorkflowId, TRANSMIT_MESSAGE } from '../../workflows/outbound/send-message.contract.ts';
import { reconcileRestoredDrafts } from '../drafts/restored-drafts.ts';
import { reconcileRestoredNotifications } from '../notifications/restored-notifications.ts';
import type { OutcomeService } from '../outbound/outcome.service.ts';
import { reconcileRestoredSends } from '../outbound/restored-sends.ts';

export interface ReconcileRestoreOptions {
  database: Database;
  storage: Pick<Storage, 'sizeOf' | 'getBytes' | 'putBytes'>;
  outcomes: OutcomeService;
  outbox: Outbox;
  temporal: Pick<Client, 'workflow'>;
  workflows: Pick<WorkflowGateway, 'describe'>;
}

export interface RestoreFacts {
  /** Time of the backup: what happened later is missing from the database. */
  restoredTo: Date;
  /** Nothing happened after the backup: the service was stopped, and the database was moved. */
  isNothingLost: boolean;
  /** The bucket was not restored, so it has everything that was ever transmitted. */
  isStorageComplete: boolean;
  /** Temporal was neither lost nor restored, so its histories are complete. */
  isTemporalComplete: boolean;
  keepsFutureSchedules: boolean;
}

export type RestoreCounts = Record<
  | 'sends_resumed'
  | 'sends_needing_attention'
  | 'schedules_kept'
  | 'schedules_removed'
  | 'notifications_failed'
  | 'deletions_due_soon',
  number
>;

/**
 * Makes a restored database safe to work on, before workers take work: what may have left after the backup is not sent again.
 * Safe to repeat after an interruption; workers wait until it has completed.
 *
 * @throws Error if storage, or Temporal where it is asked, does not respond.
 */
export async function reconcileRestore(
  options: ReconcileRestoreOptions,
  facts: RestoreFacts,
): Promise<RestoreCounts> {
  const { database } = options;
  const { id, markedAt } = await beginReconciliation(database, facts.restoredTo);
  const counts = facts.isNothingLost ? NOTHING : await reconcileRows(options, facts, markedAt);
  const all = { ...counts, deletions_due_soon: await countDeletionsDueSoon(database) };
  await createProgressMarker(database, options.storage).catchUp();
  await endReconciliation(database, id, all);
  return all;
}

const NOTHING = {
  sends_resumed: 0,
  sends_needing_attention: 0,
  schedules_kept: 0,
  schedules_removed: 0,
  notifications_failed: 0,
};

async function reconcileRows(
  options: ReconcileRestoreOptions,
  facts: RestoreFacts,
  createdBefore: Date,
): Promise<typeof NOTHING> {
  const { database, temporal, workflows } = options;
  const { restoredTo, isTemporalComplete, isStorageComplete, keepsFutureSchedules } = facts;
  const sends = await reconcileRestoredSends(
    {
      ...options,
      isStorageComplete,
      findTransmission: async (messageId) =>
        isTemporalComplete
          ? findActivitySince(temporal, {
              workflowId: sendMessageWorkflowId(messageId),
              activityType: TRANSMIT_MESSAGE,
              since: restoredTo,
            })
          : 'unknown',
    },
    createdBefore,
  );
  const drafts = await reconcileRestoredDrafts(
    {
      database,
      keepsFutureSchedules,
      isStillWaiting: async (draft) =>
        isTemporalComplete &&
        (await workflows.describe(sendScheduledDraftWorkflowId(draft.id, draft.scheduleVersion))).status ===
          'RUNNING',
    },
    createdBefore,
  );
  return {
    sends_resumed: sends.resumed,
    sends_needing_attention: sends.needsAttention,
    schedules_kept: drafts.kept,
    schedules_removed: drafts.unscheduled,
    notifications_failed: await reconcileRestoredNotifications(database, createdBefore),
  };
}

/** Deletions whose recovery may be missing from the backup. An operator should check them before they are due. */
async function countDeletionsDueSoon(database: Database): Promise<number> {
  const [row] = await database.query<{ count: number }>(
    sql`select count(*)::int as count from deletions
        where status = 'waiting' and due_at < now() + interval '8 days'`,
  );
  return row?.count ?? 0;
}
