import type { EntityManager } from '@mikro-orm/postgresql';
import { findRow, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import { notFound } from '../../platform/errors.ts';
import { inboxSuspended } from '../identity/authentication.ts';
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
export async function requireActiveInbox(reader: RowReader, inboxId: string): Promise<void> {
  const inbox = await findRow(reader, InboxEntity, { where: { id: inboxId } });
  if (!inbox) throw notFound('inbox', inboxId);
  requireActive(inbox);
}

/** @throws AppError `inbox_suspended`. */
export function requireActive<Found extends Pick<Inbox, 'status'>>(inbox: Found): Found {
  if (inbox.status === 'active') return inbox;
  throw inboxSuspended();
}

/** @throws AppError `not_found`. */
export async function findInboxIncludingDeleted(
  em: EntityManager,
  scope: Scope,
  inboxId: string,
): Promise<Inbox> {
  const inbox = canAccessInbox(scope, inboxId)
    ? await em.findOne(InboxEntity, inEnvironment(scope, inboxId))
    : null;
  if (!inbox) throw notFound('inbox', inboxId);
  return inbox;
}

/** As {@link findInbox}, for use-cases that do not change the inbox. */
export async function readInbox(reader: RowReader, scope: Scope, inboxId: string): Promise<Row<Inbox>> {
  const inbox = await readInboxIncludingDeleted(reader, scope, inboxId);
  if (inbox.deletedAt) throw notFound('inbox', inboxId);
  return inbox;
}

/** An inbox that is being purged is shown until nothing of it is left. @throws AppError `not_found`. */
export async function readPresentInbox(
  reader: RowReader,
  scope: Scope,
  inboxId: string,
): Promise<Row<Inbox>> {
  const inbox = await readInboxWithMail(reader, scope, inboxId);
  if (inbox.deletedAt && !inbox.purgeRequestedAt) throw notFound('inbox', inboxId);
  return inbox;
}

/** The messages of a deleted inbox stay readable until they are purged. @throws AppError `not_found`. */
export async function readInboxWithMail(
  reader: RowReader,
  scope: Scope,
  inboxId: string,
): Promise<Row<Inbox>> {
  const inbox = await readInboxIncludingDeleted(reader, scope, inboxId);
  if (inbox.purgedAt) throw notFound('inbox', inboxId);
  return inbox;
}

/** For what outlives an inbox and its messages, such as events. @throws AppError `not_found`. */
export async function readInboxIncludingDeleted(
  reader: RowReader,
  scope: Scope,
  inboxId: string,
): Promise<Row<Inbox>> {
  const inbox = canAccessInbox(scope, inboxId)
    ? await findRow(reader, InboxEntity, { where: inEnvironment(scope, inboxId) })
    : undefined;
  if (!inbox) throw notFound('inbox', inboxId);
  return inbox;
}

function inEnvironment({ organizationId, environmentId }: Scope, inboxId: string) {
  return { id: inboxId, organizationId, environmentId };
}
