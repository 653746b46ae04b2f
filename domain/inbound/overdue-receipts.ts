import type { Database } from '../../platform/database/database.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import { buildReceiveStart } from './receipt.service.ts';

/**
 * Received mail is never abandoned: its workflow is restarted, however it ended. Only the signal `discard` settles a
 * message that is lost.
 */
export function overdueReceipts({ db }: Database): OverdueSource {
  return {
    name: 'receipts',
    async take(limit) {
      const overdue = db
        .selectFrom('inbound_receipts')
        .select('id')
        .where('status', '=', 'received')
        .where('received_at', '<', minutesAgo(2));
      const rows = await db
        .updateTable('inbound_receipts')
        .set(RECONCILED)
        .where('id', '=', lockOverdue(overdue, { limit }))
        .returning([
          'id',
          'org_id as organizationId',
          'env_id as environmentId',
          'inbox_id as inboxId',
          'message_id as messageId',
          'kind',
          'size_bytes as sizeBytes',
        ])
        .execute();
      return rows.map((row) => ({ start: buildReceiveStart(row), whenStopped: 'restart' as const }));
    },
  };
}
