import type { Database } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { deleteInboxDrafts } from '../drafts/delete-inbox-drafts.ts';
import { deleteInboxReceipts } from '../inbound/delete-inbox-receipts.ts';
import { isPurgeRequested, markPurged } from '../inboxes/purge-request.ts';
import {
  countInboxMessages,
  deleteInboxMessages,
  deleteInboxThreads,
} from '../messages/delete-inbox-messages.ts';
import { deleteInboxRefusals } from '../refusals/delete-refusals.ts';

export interface PurgeCounts {
  messages: number;
  threads: number;
}

export interface PurgeService {
  /**
   * Deletes the mail of an inbox that was deleted with `purge`, in batches: messages with everything that belongs to
   * them, threads, drafts, receipts and refusals. Later sweeps delete the stored objects. Idempotent.
   *
   * @param onProgress called after each batch.
   * @throws AppError `unavailable` while a message is being sent or needs attention, after everything else has been deleted.
   */
  purge(inboxId: string, onProgress: (counts: PurgeCounts) => void): Promise<PurgeCounts>;
}

const BATCH_SIZE = 500;

type DeleteBatch = (database: Database, inboxId: string, batchSize: number) => Promise<number>;

export function createPurgeService({ database }: { database: Database }): PurgeService {
  return {
    async purge(inboxId, onProgress) {
      const counts: PurgeCounts = { messages: 0, threads: 0 };
      const deleteAll = async (deleteBatch: DeleteBatch, counter?: keyof PurgeCounts) => {
        for (let deleted = BATCH_SIZE; deleted === BATCH_SIZE; ) {
          deleted = await deleteBatch(database, inboxId, BATCH_SIZE);
          if (counter) counts[counter] += deleted;
          onProgress(counts);
        }
      };
      if (!(await isPurgeRequested(database, inboxId))) return counts;
      await deleteAll(deleteInboxMessages, 'messages');
      await deleteAll(deleteInboxDrafts);
      await deleteAll(deleteInboxReceipts);
      await deleteAll(deleteInboxRefusals);
      await deleteAll(deleteInboxThreads, 'threads');
      const remaining = await countInboxMessages(database, inboxId);
      if (remaining > 0) throw stillSending(remaining);
      await markPurged(database, inboxId);
      return counts;
    },
  };
}

function stillSending(count: number): AppError {
  return new AppError('unavailable', {
    detail: `${count} message(s) of the inbox are still being sent, or it is unknown whether they were.`,
    fix: 'Resolve those that need attention. The purge is retried until all are settled.',
  });
}
