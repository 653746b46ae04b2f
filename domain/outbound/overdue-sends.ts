import type { Database } from '../../platform/database/database.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import { cancelOpenRecipients } from './cancel-send.ts';
import { IS_HELD } from './held-sends.ts';
import { abandonAttempts, type OutcomeService, recordSend } from './outcome.service.ts';
import { buildSendStart } from './workflow-commands.ts';

/** A worker whose run was ended stops after the transaction with the relay in which it is. */
const ABANDONED_MINUTES = 15;

/**
 * Unsettled messages whose run may be missing. If an operator ended the run, the unsent part of the message is
 * canceled. The run starts again only for recipients whose outcome is unknown, because only a decision or a report can
 * settle them.
 */
export function overdueMessages(database: Database, outcomes: OutcomeService): OverdueSource {
  return {
    name: 'messages',
    async take(limit) {
      const { db } = database;
      // A held message has no run. A deferred message may wait for hours, but its run must exist; a check costs one
      // `describe` call.
      const overdue = db
        .selectFrom('messages')
        .select('id')
        .where('status', 'in', ['queued', 'sending', 'deferred', 'needs_attention'])
        .where('updated_at', '<', minutesAgo(2))
        .where((eb) => eb.not(IS_HELD));
      const rows = await db
        .updateTable('messages')
        .set(RECONCILED)
        .where('id', '=', lockOverdue(overdue, { limit }))
        .returning([
          'id',
          'org_id as organizationId',
          'env_id as environmentId',
          'inbox_id as inboxId',
          'thread_id as threadId',
        ])
        .execute();
      return rows.map((row) => ({
        start: buildSendStart(row),
        whenStopped: async () => {
          await abandonAttempts(db, row.id).where('started_at', '<', minutesAgo(ABANDONED_MINUTES)).execute();
          await recordSend(database, outcomes, row.id);
          const detail = 'An operator ended the workflow of the send.';
          const { ambiguous } = await cancelOpenRecipients(database, outcomes, row.id, detail);
          return ambiguous.length > 0 ? 'restart' : undefined;
        },
      }));
    },
  };
}
