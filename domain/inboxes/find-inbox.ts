import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import { compileOnce } from '../../platform/database/compile-once.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import { inboxSuspended } from '../identity/authentication.ts';
import { canAccessInbox, type Scope } from '../identity/scope.ts';
import { type Inbox, InboxEntity } from './inbox.entity.ts';

export type InboxRow = RowOf<typeof InboxEntity>;

/** @throws AppError `not_found`, including for a deleted inbox. */
export async function findInbox(db: Db, scope: Scope, inboxId: string): Promise<InboxRow> {
  const inbox = await findInboxIncludingDeleted(db, scope, inboxId);
  if (inbox.deletedAt) throw notFound('inbox', inboxId);
  return inbox;
}

/**
 * For changes to the inbox and what belongs to it. Sends use `findInbox`: the send gate refuses them, with an event.
 *
 * @throws AppError `not_found`, including for a deleted inbox; `inbox_suspended`.
 */
export async function findActiveInbox(db: Db, scope: Scope, inboxId: string): Promise<InboxRow> {
  return requireActive(await findInbox(db, scope, inboxId));
}

/**
 * Locks an inbox against its deletion until the transaction ends.
 *
 * @throws AppError `not_found`, `inbox_suspended`.
 */
export async function lockActiveInbox(db: Db, scope: Scope, inboxId: string): Promise<InboxRow> {
  const inbox = canAccessInbox(scope, inboxId)
    ? await db
        .selectFrom('inboxes')
        .select(columnsOf(InboxEntity))
        .where('id', '=', inboxId)
        .where('org_id', '=', scope.organizationId)
        .where('deleted_at', 'is', null)
        .$if(scope.environmentBound, (query) => query.where('env_id', '=', scope.environmentId))
        .forUpdate()
        .executeTakeFirst()
    : undefined;
  if (!inbox) throw notFound('inbox', inboxId);
  return requireActive(inbox);
}

/**
 * For changes to a message, thread or draft that was found in the scope.
 *
 * @throws AppError `inbox_suspended`.
 */
export async function requireActiveInbox(db: Db, inboxId: string): Promise<void> {
  const inbox = await db.selectFrom('inboxes').select('status').where('id', '=', inboxId).executeTakeFirst();
  if (!inbox) throw notFound('inbox', inboxId);
  requireActive(inbox);
}

/** @throws AppError `inbox_suspended`. */
export function requireActive<Found extends Pick<Inbox, 'status'>>(inbox: Found): Found {
  if (inbox.status === 'active') return inbox;
  throw inboxSuspended();
}

/** Also finds an inbox that is being purged, until the purge ends. @throws AppError `not_found`. */
export async function findPresentInbox(db: Db, scope: Scope, inboxId: string): Promise<InboxRow> {
  const inbox = await findInboxWithMail(db, scope, inboxId);
  if (inbox.deletedAt && !inbox.purgeRequestedAt) throw notFound('inbox', inboxId);
  return inbox;
}

/** The messages of a deleted inbox stay readable until they are purged. @throws AppError `not_found`. */
export async function findInboxWithMail(db: Db, scope: Scope, inboxId: string): Promise<InboxRow> {
  const inbox = await findInboxIncludingDeleted(db, scope, inboxId);
  if (inbox.purgedAt) throw notFound('inbox', inboxId);
  return inbox;
}

/** For what outlives an inbox and its messages, such as events. @throws AppError `not_found`. */
export async function findInboxIncludingDeleted(db: Db, scope: Scope, inboxId: string): Promise<InboxRow> {
  const { organizationId, environmentId } = scope;
  const [inbox] = canAccessInbox(scope, inboxId)
    ? await selectInbox(db, { inboxId, organizationId, environmentId })
    : [];
  if (!inbox) throw notFound('inbox', inboxId);
  return inbox;
}

const selectInbox = compileOnce(
  (db, values: { inboxId: string; organizationId: string; environmentId: string }) =>
    db
      .selectFrom('inboxes')
      .select(columnsOf(InboxEntity))
      .where('id', '=', values.inboxId)
      .where('org_id', '=', values.organizationId)
      .where('env_id', '=', values.environmentId)
      .modifyEnd(PREPARED),
);
