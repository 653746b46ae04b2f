import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../platform/database/database.ts';
import { readDatabaseTime } from '../../platform/database/database-time.ts';
import { AppError } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Storage } from '../../platform/storage.ts';
import { deleteInboxUploads } from '../attachments/unused-uploads.ts';
import { deleteInboxDrafts } from '../drafts/deleted-inbox-drafts.ts';
import type { EventService } from '../events/event.service.ts';
import { FIRST_EVENT, type InboxEventPosition } from '../events/redact-events.ts';
import { expireArchives } from '../exports/purge-exports.ts';
import { deleteInboxReceipts } from '../inbound/delete-receipts.ts';
import { findRequestedPurge, markInboxPurged } from '../inboxes/inbox-purge.ts';
import { forgetInboxAlarmAddresses } from '../messages/injection-alarms.ts';
import { countInboxMessages, deleteInboxMessages, deleteInboxThreads } from '../messages/purge-messages.ts';
import { deleteInboxRefusals } from '../refusals/delete-refusals.ts';
import { sweepDueObjects } from '../stored-objects/sweep-organization.ts';

export interface PurgeCounts {
  messages: number;
  threads: number;
}

export type InboxPurgeService = ReturnType<typeof createInboxPurgeService>;

export interface InboxPurgeServiceOptions {
  database: Database;
  outbox: Pick<Outbox, 'enqueue'>;
  storage: Pick<Storage, 'deleteMany'>;
  events: Pick<EventService, 'redact' | 'redactInbox'>;
}

const BATCH_SIZE = 500;
/** Pause while another process deletes the rest of the objects. */
const SWEEP_PAUSE_MS = 1_000;

type DeleteBatch = (batchSize: number) => Promise<number>;

export function createInboxPurgeService({ database, outbox, storage, events }: InboxPurgeServiceOptions) {
  const expire = (organizationId: string, madeBefore: string) =>
    database.systemTransaction((transaction) =>
      expireArchives(transaction, outbox, { organizationId, madeBefore }),
    );

  async function redactEvents(inboxId: string, onBatch: () => void): Promise<void> {
    let after: InboxEventPosition | null = FIRST_EVENT;
    while (after !== null) {
      const from: InboxEventPosition = after;
      after = await database.systemTransaction((transaction) =>
        events.redactInbox(transaction, inboxId, { after: from, limit: BATCH_SIZE }),
      );
      onBatch();
    }
  }

  return {
    /**
     * Deletes the mail of an inbox that was deleted with `purge`, in batches: messages with everything that belongs to
     * them, threads, drafts, files, receipts and refusals. The events of the inbox lose their content, and existing
     * archives expire. Returns when the stored objects are deleted, so that links to them no longer work. Idempotent.
     *
     * @param onProgress called after each batch.
     * @throws AppError `unavailable` while a message is being sent or needs attention, after everything else has been
     * deleted.
     */
    async purge(inboxId: string, onProgress: (counts: PurgeCounts) => void): Promise<PurgeCounts> {
      const counts: PurgeCounts = { messages: 0, threads: 0 };
      const deleteAll = async (deleteBatch: DeleteBatch, counter?: keyof PurgeCounts) => {
        for (let deleted = BATCH_SIZE; deleted === BATCH_SIZE; ) {
          deleted = await deleteBatch(BATCH_SIZE);
          if (counter) counts[counter] += deleted;
          onProgress(counts);
        }
      };
      const requested = await findRequestedPurge(database, inboxId);
      if (!requested) return counts;
      const { organizationId, requestedAt } = requested;
      // A purge may wait for days until the last message is settled. Archives made in the meantime expire with it.
      await expire(organizationId, requestedAt);
      await deleteAll((limit) => deleteInboxMessages(database, events, inboxId, limit), 'messages');
      await forgetInboxAlarmAddresses(database, inboxId);
      await deleteAll((limit) => deleteInboxDrafts(database, events, inboxId, limit));
      await deleteAll((limit) => deleteInboxUploads(database, inboxId, limit));
      await deleteAll((limit) => deleteInboxReceipts(database, inboxId, limit));
      await deleteAll((limit) => deleteInboxRefusals(database, inboxId, limit));
      await deleteAll((limit) => deleteInboxThreads(database, inboxId, limit), 'threads');
      const remaining = await countInboxMessages(database, inboxId);
      if (remaining === 0) {
        await redactEvents(inboxId, () => onProgress(counts));
        await expire(organizationId, await readDatabaseTime(database));
      }
      const dueBefore = await readDatabaseTime(database);
      while ((await sweepDueObjects(database, storage, { organizationId, dueBefore })) === 'more') {
        onProgress(counts);
        await sleep(SWEEP_PAUSE_MS);
      }
      if (remaining > 0) throw messagesInFlight(remaining);
      await markInboxPurged(database, inboxId);
      return counts;
    },
  };
}

function messagesInFlight(count: number): AppError {
  return new AppError('unavailable', {
    detail: `${count} message(s) of the inbox are still being sent, or it is unknown whether they were.`,
    fix: 'Resolve those that need attention. The purge is retried until all are settled.',
  });
}
