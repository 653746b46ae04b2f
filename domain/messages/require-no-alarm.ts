import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import type { Scope } from '../identity/scope.ts';
import { describeAlarm, findReachedAlarm } from './injection-alarms.ts';

/**
 * A deceived agent must not let others read the mail of an inbox, so a key may not do that after an injection alarm in an inbox
 * that it reaches. People may.
 *
 * @param what what such a key does not do, as in "creates webhook endpoints".
 * @throws AppError `policy_violation`.
 */
export async function requireNoAlarm(db: Db, scope: Scope, what: string): Promise<void> {
  if (scope.actor.kind === 'user') return;
  const alarm = await findReachedAlarm(db, scope);
  if (!alarm) return;
  const { messageId, inboxId } = alarm;
  throw new AppError('policy_violation', {
    detail: `${describeAlarm(messageId)} Until its alarm ends, no key that reaches its inbox (${inboxId}) ${what}.`,
    fix: `Ask a person to do it with their own session, or to dismiss the alarm if it is a false one: POST /api/v1/messages/${messageId}/injection/dismiss. It ends by itself 24 hours after the message arrived.`,
    extensions: { policy: 'after_alarm' },
  });
}
