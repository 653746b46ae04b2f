import type { Database } from '../../platform/database/database.ts';
import { type OverdueSource, takeOverdue } from '../overdue.ts';
import type { DispatchService } from './dispatch.service.ts';
import { startOfSend } from './outbound-message.ts';
import { startOfReceive } from './receipt.service.ts';

/** A deferred message may rest for hours, but its run must be there: looking costs one `describe` in ten minutes. */
const OVERDUE_MESSAGE = `status in ('queued', 'sending', 'deferred', 'needs_attention')
  and updated_at < now() - interval '2 minutes'`;
const OVERDUE_RECEIPT = `status = 'received' and received_at < now() - interval '2 minutes'`;

/**
 * Messages whose run is gone. One an operator stopped is canceled, if nothing has left; with an open question it runs
 * again, because only an answer ends that.
 */
export function overdueMessages(database: Database, dispatch: DispatchService): OverdueSource {
  return {
    name: 'messages',
    async take(limit) {
      const rows = await takeOverdue<Parameters<typeof startOfSend>[0] & { status: string }>(database, {
        table: 'messages',
        overdue: OVERDUE_MESSAGE,
        columns: `id, org_id as "organizationId", env_id as "environmentId", inbox_id as "inboxId",
          thread_id as "threadId", status`,
        limit,
      });
      return rows.map((row) => ({
        start: startOfSend(row),
        whenStopped:
          row.status === 'needs_attention'
            ? ('restart' as const)
            : async () => {
                await dispatch.record(row.id);
                await dispatch.cancel(row.id, 'An operator ended the send’s workflow.');
              },
      }));
    },
  };
}

/** Received mail is never given up: its run starts again whatever ended it. */
export function overdueReceipts(database: Database): OverdueSource {
  return {
    name: 'receipts',
    async take(limit) {
      const rows = await takeOverdue<Parameters<typeof startOfReceive>[0]>(database, {
        table: 'inbound_receipts',
        overdue: OVERDUE_RECEIPT,
        columns: `id, org_id as "organizationId", env_id as "environmentId", inbox_id as "inboxId",
          message_id as "messageId", kind, size_bytes as "sizeBytes"`,
        limit,
      });
      return rows.map((row) => ({ start: startOfReceive(row), whenStopped: 'restart' as const }));
    },
  };
}
