import type { EntityManager } from '@mikro-orm/postgresql';
import { AppError, notFound } from '../../platform/errors.ts';
import { canAccessInbox, type Scope } from '../identity/scope.ts';
import { type Inbox, InboxEntity } from './inbox.entity.ts';

/** @throws AppError `not_found`, including for a deleted inbox. */
export async function findInbox(em: EntityManager, scope: Scope, inboxId: string): Promise<Inbox> {
  const inbox = await findInboxIncludingDeleted(em, scope, inboxId);
  if (inbox.deletedAt) throw notFound('inbox', inboxId);
  return inbox;
}

/**
 * For changes to the inbox and what belongs to it. Sends use `findInbox`: the send gate refuses them, with an event.
 *
 * @throws AppError `not_found`, including for a deleted inbox; `inbox_suspended`.
 */
export async function findActiveInbox(em: EntityManager, scope: Scope, inboxId: string): Promise<Inbox> {
  return requireActive(await findInbox(em, scope, inboxId));
}

/**
 * For changes to a message, thread or draft that was found in the scope.
 *
 * @throws AppError `inbox_suspended`.
 */
export async function requireActiveInbox(em: EntityManager, inboxId: string): Promise<void> {
  requireActive(await em.findOneOrFail(InboxEntity, { id: inboxId }));
}

/** @throws AppError `inbox_suspended`. */
export function requireActive(inbox: Inbox): Inbox {
  if (inbox.status === 'active') return inbox;
  throw new AppError('inbox_suspended', {
    detail: 'The inbox is suspended: it can be read but not changed.',
    fix: 'Use another inbox, or ask an owner of the organization to contact support.',
  });
}

/** For reads: the messages of a deleted inbox stay readable. @throws AppError `not_found`. */
export async function findInboxIncludingDeleted(
  em: EntityManager,
  scope: Scope,
  inboxId: string,
): Promise<Inbox> {
  const { organizationId, environmentId } = scope;
  const inbox = canAccessInbox(scope, inboxId)
    ? await em.findOne(InboxEntity, { id: inboxId, organizationId, environmentId })
    : null;
  if (!inbox) throw notFound('inbox', inboxId);
  return inbox;
}
