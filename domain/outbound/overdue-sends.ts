import type { Database } from '../../platform/database/database.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import { cancelOpenRecipients } from './cancel-send.ts';
import { HELD_DETAIL, SWITCHED_OFF_DETAIL } from './held-sends.ts';
import { type OutcomeService, recordSend } from './outcome.service.ts';
import { buildSendStart } from './send.service.ts';

/**
 * Held messages have no run. A deferred message may wait for hours, but its run must exist. Checking costs one `describe` call every ten minutes.
 */
const OVERDUE_MESSAGE = `status in ('queued', 'sending', 'deferred', 'needs_attention')
  and updated_at < now() - interval '2 minutes' and coalesce(status_detail, '') not in ('${HELD_DETAIL}', '${SWITCHED_OFF_DETAIL}')`;

/**
 * Unsettled messages whose run may be gone. If an operator ended the run, the unsent part of the message is canceled;
 * an ambiguous message is restarted, because only a decision or a report can settle it.
 */
export function overdueMessages(database: Database, outcomes: OutcomeService): OverdueSource {
  return {
    name: 'messages',
    async take(limit) {
      const rows = await takeOverdue<Parameters<typeof buildSendStart>[0] & { status: string }>(database, {
        table: 'messages',
        overdue: OVERDUE_MESSAGE,
        columns: `id, org_id as "organizationId", env_id as "environmentId", inbox_id as "inboxId",
          thread_id as "threadId", status`,
        limit,
      });
      return rows.map((row) => ({
        start: buildSendStart(row),
        whenStopped:
          row.status === 'needs_attention'
            ? ('restart' as const)
            : async () => {
                await recordSend(database, outcomes, row.id);
                const detail = 'An operator ended the workflow of the send.';
                await cancelOpenRecipients(database, outcomes, row.id, detail);
              },
      }));
    },
  };
}
