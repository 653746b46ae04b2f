import type { EntityManager } from '@mikro-orm/postgresql';
import { notFound } from '../../platform/errors.ts';
import { canAccessInbox, type Scope } from '../identity/scope.ts';
import { type Inbox, InboxEntity } from './inbox.entity.ts';

/** @throws AppError `not_found`, including for a deleted inbox. */
export async function findInbox(em: EntityManager, scope: Scope, inboxId: string): Promise<Inbox> {
  const inbox = await findInboxIncludingDeleted(em, scope, inboxId);
  if (inbox.deletedAt) throw notFound('inbox', inboxId);
  return inbox;
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
