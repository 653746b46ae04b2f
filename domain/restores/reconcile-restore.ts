import type { Client } from '@temporalio/client';
import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import { InstallationError } from '../../platform/installation/installation-error.ts';
import { createProgressMarker } from '../../platform/installation/progress-marker.ts';
import {
  beginReconciliation,
  endReconciliation,
  type RecordedRestore,
  readRecordedRestore,
} from '../../platform/installation/restore-rows.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { findActivitySince } from '../../platform/outbox/run-history.ts';
import type { WorkflowGateway } from '../../platform/outbox/workflow-gateway.ts';
import type { Storage } from '../../platform/storage.ts';
import { sendScheduledDraftWorkflowId } from '../../workflows/drafts/send-scheduled-draft.contract.ts';
import {
  isNotTransmitted,
  sendMessageWorkflowId,
  TRANSMIT_MESSAGE,
} from '../../workflows/outbound/send-message.contract.ts';
import { reconcileRestoredDrafts } from '../drafts/restored-drafts.ts';
import { reconcileRestoredNotifications } from '../notifications/notification-sending.service.ts';
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

/** What the operator states about the restore. */
export interface RestoreFacts {
  /** Time of the backup. Everything later is missing from the database. Default: the time that the restore has recorded. */
  restoredTo?: Date | undefined;
  /** Whether nothing happened after the backup, because the service was stopped and the database was moved. */
  isNothingLost: boolean;
  /**
   * `intact`: the bucket was not restored, so it contains everything that was ever transmitted. `restored`: nothing is sent
   * that may have been sent before. Default: what the restore has recorded, or else `restored`.
   */
  storage?: 'intact' | 'restored' | undefined;
  /** Whether Temporal was neither lost nor restored, so that its histories are complete. */
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
 * Prepares a restored database for workers: nothing that may have been sent after the backup is sent again. Can be repeated
 * after an interruption; workers wait until it has completed.
 *
 * @throws InstallationError if the restore was interrupted, or the facts contradict its record.
 * @throws Error if storage does not respond, or Temporal, where it is needed.
 */
export async function reconcileRestore(
  options: ReconcileRestoreOptions,
  facts: RestoreFacts,
): Promise<RestoreCounts> {
  const { database } = options;
  const known = { ...facts, ...completeFacts(facts, await readRecordedRestore(database)) };
  const { id, markedAt } = await beginReconciliation(database, known.restoredTo);
  const counts = facts.isNothingLost ? NOTHING : await reconcileRows(options, known, markedAt);
  const all = { ...counts, deletions_due_soon: await countDeletionsDueSoon(database) };
  await createProgressMarker(database, options.storage).catchUp();
  await endReconciliation(database, id, all);
  return all;
}

/** @throws InstallationError */
function completeFacts(
  { restoredTo, storage }: RestoreFacts,
  recorded: RecordedRestore,
): { restoredTo: Date; isStorageComplete: boolean } {
  if (recorded.isUnfinished)
    throw new InstallationError(
      'The restore was interrupted, so the database or the bucket is incomplete. Run the same `npm run restore` again first.',
    );
  const lacked = recorded.storage === 'restored';
  if (storage === 'intact' && lacked)
    throw new InstallationError(
      'The bucket is not intact: it lacked objects of the backup, which the restore has copied.',
    );
  const time = restoredTo ?? recorded.restoredTo;
  if (!time)
    throw new InstallationError(
      'The time of the backup is not recorded, because the database was restored by other means: name it with --restored-to.',
    );
  const isIntact = recorded.storage === 'complete' && storage !== 'restored';
  return { restoredTo: time, isStorageComplete: isIntact || storage === 'intact' };
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
  facts: Omit<RestoreFacts, 'restoredTo' | 'storage'> & { restoredTo: Date; isStorageComplete: boolean },
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
              isWithoutEffect: isNotTransmitted,
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
  const row = await database.db
    .selectFrom('deletions')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('status', '=', 'waiting')
    .where('due_at', '<', sql<Date>`now() + interval '8 days'`)
    .executeTakeFirst();
  return row?.count ?? 0;
}
