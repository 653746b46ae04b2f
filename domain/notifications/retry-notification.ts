import type { Transaction } from '../../platform/database/database.ts';
import { DUE_NOW } from '../../platform/database/database-time.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { linkExpiresAt } from './link-lifetimes.ts';
import type { Notification } from './notification.entity.ts';
import { buildNotificationStart } from './notification-run.ts';

type RetriedNotification = Pick<
  Notification,
  'id' | 'organizationId' | 'userId' | 'template' | 'status' | 'generation' | 'createdAt'
>;

/**
 * Makes a failed email due again, with the full number of attempts. The earlier run has completed, so the new run has
 * another id.
 *
 * @throws AppError `not_found`; `conflict` if the email has not failed, or its link no longer works.
 */
export async function retryNotification(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  id: string,
): Promise<RetriedNotification> {
  const { db } = transaction;
  const email = await db
    .selectFrom('notifications')
    .select([
      'id',
      'org_id as organizationId',
      'user_id as userId',
      'template',
      'status',
      'generation',
      'created_at as createdAt',
    ])
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  if (!email) throw notFound('system email', id);
  if (email.status !== 'failed') throw notFailed(email);
  const expiresAt = linkExpiresAt(email);
  if (expiresAt && expiresAt.getTime() <= Date.now()) throw linkExpired(expiresAt);
  const generation = email.generation + 1;
  await db
    .updateTable('notifications')
    .set({
      status: 'pending',
      attempts: 0,
      generation,
      next_attempt_at: DUE_NOW,
      reconciled_at: null,
    })
    .where('id', '=', id)
    .execute();
  outbox.enqueue(transaction, email.organizationId ?? email.userId ?? id, {
    start: buildNotificationStart({ ...email, generation }),
  });
  return { ...email, status: 'pending', generation };
}

function notFailed({ status }: Pick<Notification, 'status'>): AppError {
  return new AppError('conflict', {
    detail: status === 'sent' ? 'The email was sent.' : 'The email is being sent.',
    fix: status === 'sent' ? 'Nothing is left to do.' : 'Wait until it is sent, or has failed.',
  });
}

function linkExpired(at: Date): AppError {
  return new AppError('conflict', {
    detail: `The link in the email stopped working at ${at.toISOString()}.`,
    fix: 'Ask the person, or the member who invited them, to request another email.',
  });
}
