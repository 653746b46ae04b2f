import type { Database } from '../../platform/database/database.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import { buildReceiveStart } from './receipt.service.ts';

const OVERDUE_RECEIPT = `status = 'received' and received_at < now() - interval '2 minutes'`;

/**
 * Received mail is never abandoned: its workflow is restarted no matter how it ended. Only the signal `discard` settles a
 * message that is lost.
 */
export function overdueReceipts(database: Database): OverdueSource {
  return {
    name: 'receipts',
    async take(limit) {
      const rows = await takeOverdue<Parameters<typeof buildReceiveStart>[0]>(database, {
        table: 'inbound_receipts',
        overdue: OVERDUE_RECEIPT,
        columns: `id, org_id as "organizationId", env_id as "environmentId", inbox_id as "inboxId",
          message_id as "messageId", kind, size_bytes as "sizeBytes"`,
        limit,
      });
      return rows.map((row) => ({ start: buildReceiveStart(row), whenStopped: 'restart' as const }));
    },
  };
}
