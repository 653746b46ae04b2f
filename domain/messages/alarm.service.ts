import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { requireApprover } from '../identity/approver.ts';
import { columnsWithin, requirePermission, type Scope } from '../identity/scope.ts';
import { requireActiveInbox } from '../inboxes/find-inbox.ts';
import { endAlarm, findAlarm } from './injection-alarms.ts';
import { loadDetails, type MessageDetails, WHOLE_MESSAGE, type WholeMessage } from './message-details.ts';

/** The evidence of an alarm in force. The words are a stranger's. Null and empty if the message was deleted. */
export interface AlarmEvidence {
  fromEmail: string | null;
  subject: string | null;
  excerpts: string[];
}

export type AlarmService = ReturnType<typeof createAlarmService>;

export function createAlarmService({ database }: { database: Database }) {
  return {
    /** What an approver should know about the alarm of a message; null if it is no longer in force. */
    findEvidence: (scope: Scope, messageId: string): Promise<AlarmEvidence | null> =>
      database.read(scope, async ({ db }) => {
        requirePermission(scope, 'messages:read');
        const found = await db
          .selectFrom('injection_alarms as a')
          .leftJoin('messages as m', 'm.id', 'a.message_id')
          .select(['m.from_email as fromEmail', 'm.subject', 'm.injection'])
          .where('a.message_id', '=', messageId)
          .where('a.org_id', '=', scope.organizationId)
          .where('a.ends_at', '>', sql<Date>`now()`)
          .executeTakeFirst();
        if (!found) return null;
        const { fromEmail, subject, injection } = found;
        const excerpts = injection?.reasons.map(({ excerpt }) => excerpt) ?? [];
        return { fromEmail, subject, excerpts };
      }),

    /**
     * Ends the alarm of a received message: from then on, sends of its inbox need no approval because of it. Drafts that wait
     * already still wait for a decision. A second dismissal changes nothing.
     *
     * @returns the message; null if it was deleted meanwhile.
     * @throws AppError `not_found`, `conflict` if the message has no alarm, `permission_denied`, `inbox_suspended`.
     */
    dismiss: (scope: Scope, messageId: string): Promise<MessageDetails | null> =>
      database.transaction(scope, async ({ db }) => {
        const approver = await requireApprover(db, scope);
        const found = await lockMessage(db, scope, messageId);
        const inboxId = found?.inboxId ?? (await findAlarm(db, scope, messageId))?.inboxId;
        if (inboxId === undefined) throw notFound('message', messageId);
        await requireActiveInbox(db, inboxId);
        if (found && found.injection.level !== 'alarm') throw hasNoAlarm(found);
        if (found?.injectionDismissedAt) return loadDetails(db, found);
        await endAlarm(db, messageId);
        await recordAudit(db, scope, {
          action: 'message.injection_dismissed',
          resourceType: 'message',
          resourceId: messageId,
          details: { inbox_id: inboxId },
        });
        return found ? loadDetails(db, await markDismissed(db, messageId, approver)) : null;
      }),
  };
}

const lockMessage = (db: Db, scope: Scope, messageId: string): Promise<WholeMessage | undefined> =>
  db
    .selectFrom('messages')
    .select(WHOLE_MESSAGE)
    .where('id', '=', messageId)
    .where((eb) => eb.and(columnsWithin(scope)))
    .forUpdate()
    .executeTakeFirst();

const markDismissed = (db: Db, messageId: string, approver: string): Promise<WholeMessage> =>
  db
    .updateTable('messages')
    .set({
      injection_dismissed_at: sql`now()`,
      injection_dismissed_by: approver,
      updated_at: sql`now()`,
    })
    .where('id', '=', messageId)
    .returning(WHOLE_MESSAGE)
    .executeTakeFirstOrThrow(() => new Error('A locked message is gone'));

function hasNoAlarm({ injection: { level } }: WholeMessage): AppError {
  return new AppError('conflict', {
    detail: `The message has no alarm to dismiss; its injection.level is ${level}.`,
    fix: 'Dismiss only messages whose injection.level is alarm. Others restrict nothing.',
  });
}
