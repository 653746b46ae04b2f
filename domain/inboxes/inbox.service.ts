import { type Expression, type ExpressionBuilder, type SqlBool, sql, type Updateable } from 'kysely';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { escapeLike } from '../../platform/database/escape-like.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import { AppError, invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import type { ChangeOf } from '../audit/audit-actions.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { canAccessInbox, type Scope } from '../identity/scope.ts';
import { toAddressKey } from '../mime/mail-address.ts';
import { requireOn } from '../toggles/toggles.ts';
import { requireQuota } from '../usage/resource-quotas.ts';
import { addressTaken, claimAddress, releaseAddresses } from './address-claims.ts';
import {
  findActiveInbox,
  findInbox,
  findInboxIncludingDeleted,
  findInboxWithMail,
  findPresentInbox,
  type InboxRow,
  lockActiveInbox,
  requireActive,
} from './find-inbox.ts';
import { type Inbox, InboxEntity } from './inbox.entity.ts';
import {
  type AddressRequest,
  domainNotVerified,
  type InboxAddress,
  parseInboxAddress,
} from './inbox-address.ts';
import { type AliasOptions, ownAddresses, replaceAliases } from './inbox-aliases.ts';
import { buildInboxPurgeStart } from './inbox-purge.ts';
import { actorOfPause, requireMayResume, takesEffect } from './sending-pause.ts';

/** Either variant of the specification: `username` with `domain` and `display_name`, or `email` with `name`. */
export interface NewInbox extends AddressRequest {
  displayName?: string;
  name?: string;
  clientId?: string;
}

export interface InboxFilter {
  /** An address or alias of an inbox, case-insensitive. */
  email?: string | undefined;
  /** Part of the address or of the display name, case-insensitive. */
  q?: string | undefined;
  status?: Inbox['status'] | undefined;
  sendPaused?: boolean | undefined;
}

export type InboxService = ReturnType<typeof createInboxService>;

export interface InboxServiceOptions extends AliasOptions {
  database: Database;
  outbox: Outbox;
  /** Called in the transaction that deletes the inbox. Other rooms cancel their work for the inbox here. */
  onDelete(transaction: Transaction, inboxId: string): Promise<void>;
}

/** Maximum attempts to find a free random address. */
const MAX_RANDOM_ATTEMPTS = 5;

export function createInboxService(options: InboxServiceOptions) {
  const { database, outbox, onDelete } = options;
  return {
    /**
     * Creates an inbox, or returns the one of the organization created earlier with the same `clientId`, in whichever
     * environment it is, regardless of the other input.
     *
     * @throws AppError `already_exists` for an address that is taken, or a `clientId` of an inbox that the credential cannot
     * access; `plan_limit_reached`, `domain_not_verified`, `switched_off`, `validation_error`; `permission_denied` for a
     * credential bound to another inbox.
     */
    create: (scope: Scope, input: NewInbox): Promise<{ inbox: InboxRow; created: boolean }> =>
      database.transaction(scope, async ({ db }) => {
        rejectMixedVariants(input);
        rejectFeedbackAddress(input, options);
        const existing = await findByClientId(db, scope, input.clientId);
        if (existing) return { inbox: existing, created: false };
        if (scope.inboxId !== undefined) throw credentialBoundToInbox();
        await requireOn(db, 'inbox_creation');
        await requireQuota(db, scope.organizationId, 'inboxes');
        const inbox = await createInbox(db, scope, input, options);
        await audit(db, scope, inbox, 'created');
        return { inbox, created: true };
      }),

    list: (scope: Scope, filter: InboxFilter, page: PageRequest): Promise<Page<InboxRow>> =>
      database.read(scope, ({ db }) => findPage(inboxesInScope(db, scope, filter), 'inboxes.id', page)),

    /** Also returns an inbox that is being purged. @throws AppError `not_found`. */
    get: (scope: Scope, inboxId: string): Promise<InboxRow> =>
      database.read(scope, ({ db }) => findPresentInbox(db, scope, inboxId)),

    /** Also returns a deleted inbox, whose messages stay readable until they are purged. @throws AppError `not_found`. */
    getWithMail: (scope: Scope, inboxId: string): Promise<InboxRow> =>
      database.read(scope, ({ db }) => findInboxWithMail(db, scope, inboxId)),

    /**
     * @param changes.aliases all additional addresses that the inbox has afterwards.
     * @throws AppError `not_found`, `inbox_suspended`; the errors of `replaceAliases`; `permission_denied` for aliases by a
     * credential that is bound to the inbox, which may not create addresses.
     */
    update: (
      scope: Scope,
      inboxId: string,
      changes: { displayName?: string | null | undefined; aliases?: readonly string[] | undefined },
    ): Promise<InboxRow> =>
      database.transaction(scope, async ({ db }) => {
        const inbox = await findActiveInbox(db, scope, inboxId);
        const updated = await updateInbox(db, scope, inbox, changes, options);
        await audit(db, scope, updated, 'updated');
        return updated;
      }),

    /**
     * Pauses sending until someone resumes it. A paused inbox keeps its pause, unless a person pauses it: that pause replaces
     * the one before.
     *
     * @throws AppError `not_found`, `inbox_suspended`.
     */
    pause: (scope: Scope, inboxId: string, reason: string): Promise<InboxRow> =>
      database.transaction(scope, async ({ db }) => {
        const inbox = await lockInboxToPause(db, scope, inboxId);
        if (!takesEffect(inbox, scope, reason)) return inbox;
        const { kind, id } = actorOfPause(scope.actor);
        const paused = await changeInbox(db, inboxId, {
          send_paused: true,
          send_paused_reason: reason,
          send_paused_by_kind: kind,
          send_paused_by_id: id,
          send_paused_at: new Date(),
        });
        await audit(db, scope, inbox, 'sending_paused', reason);
        return paused;
      }),

    /**
     * Resumes paused sending. If the service had paused it, messages sent earlier do not pause the inbox again. Does nothing if
     * sending is not paused.
     *
     * @throws AppError `not_found`, `inbox_suspended`; `permission_denied` for a credential if a person paused it.
     */
    resume: (scope: Scope, inboxId: string): Promise<InboxRow> =>
      database.transaction(scope, async ({ db }) => {
        const inbox = await lockInboxToPause(db, scope, inboxId);
        if (!inbox.sendPaused) return inbox;
        requireMayResume(inbox, scope);
        const resumed = await changeInbox(db, inboxId, {
          send_paused: false,
          send_paused_reason: null,
          send_paused_by_kind: null,
          send_paused_by_id: null,
          send_paused_at: null,
          reputation_paused: false,
          ...(inbox.reputationPaused ? { send_resumed_at: new Date() } : {}),
        });
        await audit(db, scope, inbox, 'sending_resumed');
        return resumed;
      }),

    /**
     * Deletes the inbox and cancels its queued messages. The other messages stay readable. With `purge`, a workflow deletes
     * them, even if the inbox is already deleted; until then it is `purging`, and afterwards not found. The address stays
     * reserved for the organization for 90 days.
     *
     * @throws AppError `not_found`, `inbox_suspended`.
     */
    delete: (scope: Scope, inboxId: string, { purge }: { purge: boolean }): Promise<void> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const inbox = await (purge ? findInboxIncludingDeleted : findInbox)(db, scope, inboxId);
        if (inbox.purgedAt) throw notFound('inbox', inboxId);
        requireActive(inbox);
        const startsPurge = purge && !inbox.purgeRequestedAt;
        if (!inbox.deletedAt) await releaseAddresses(db, inbox.id, ownAddresses(inbox));
        if (!inbox.deletedAt || startsPurge)
          await changeInbox(db, inboxId, {
            ...(inbox.deletedAt ? {} : { deleted_at: new Date(), aliases: [] }),
            ...(startsPurge ? { purge_requested_at: new Date() } : {}),
          });
        if (!inbox.deletedAt) await onDelete(transaction, inbox.id);
        await audit(db, scope, inbox, purge ? 'purged' : 'deleted');
        if (startsPurge)
          outbox.enqueue(transaction, inbox.organizationId, { start: buildInboxPurgeStart(inbox) });
      }),
  };
}

/** Locked, so that of a pause and a resumption at once the second sees the first. */
async function lockInboxToPause(db: Db, scope: Scope, inboxId: string): Promise<InboxRow> {
  const { id } = await findActiveInbox(db, scope, inboxId);
  return lockActiveInbox(db, scope, id);
}

function audit(
  db: Db,
  scope: Scope,
  { id, email, aliases }: InboxRow,
  change: ChangeOf<'inbox'>,
  reason: string | null = null,
): Promise<void> {
  return recordAudit(db, scope, {
    action: `inbox.${change}`,
    resourceType: 'inbox',
    resourceId: id,
    reason,
    details: { email, ...(aliases.length > 0 ? { aliases } : {}) },
  });
}

async function updateInbox(
  db: Db,
  scope: Scope,
  inbox: InboxRow,
  {
    displayName,
    aliases,
  }: { displayName?: string | null | undefined; aliases?: readonly string[] | undefined },
  options: AliasOptions,
): Promise<InboxRow> {
  const changes: Updateable<Tables['inboxes']> = {};
  if (displayName !== undefined && displayName !== inbox.displayName) changes.display_name = displayName;
  if (aliases) {
    if (scope.inboxId !== undefined) throw credentialBoundToInbox();
    // Two requests at once must not both start from the same aliases.
    const locked = await lockActiveInbox(db, scope, inbox.id);
    changes.aliases = await replaceAliases(db, locked, aliases, options);
  }
  return Object.keys(changes).length > 0 ? changeInbox(db, inbox.id, changes) : inbox;
}

function changeInbox(db: Db, inboxId: string, changes: Updateable<Tables['inboxes']>): Promise<InboxRow> {
  return db
    .updateTable('inboxes')
    .set({ ...changes, updated_at: sql`now()` })
    .where('id', '=', inboxId)
    .returning(columnsOf(InboxEntity))
    .executeTakeFirstOrThrow(() => notFound('inbox', inboxId));
}

function inboxesInScope(
  db: Db,
  { organizationId, environmentId, inboxId }: Scope,
  { email, q, status, sendPaused }: InboxFilter,
) {
  return db
    .selectFrom('inboxes')
    .select(columnsOf(InboxEntity))
    .where('org_id', '=', organizationId)
    .where('env_id', '=', environmentId)
    .where('deleted_at', 'is', null)
    .$if(inboxId !== undefined, (query) => query.where('id', '=', inboxId as string))
    .$if(email !== undefined, (query) => query.where(hasAddress((email as string).toLowerCase())))
    .$if(status !== undefined, (query) => query.where('status', '=', status as Inbox['status']))
    .$if(sendPaused !== undefined, (query) => query.where('send_paused', '=', sendPaused as boolean))
    .$if(q !== undefined, (query) => query.where(contains(q as string)));
}

const contains =
  (text: string) =>
  (eb: ExpressionBuilder<Tables, 'inboxes'>): Expression<SqlBool> => {
    const pattern = `%${escapeLike(text.trim())}%`;
    return eb.or([eb('inboxes.email', 'ilike', pattern), eb('inboxes.display_name', 'ilike', pattern)]);
  };

const hasAddress =
  (email: string) =>
  (eb: ExpressionBuilder<Tables, 'inboxes'>): Expression<SqlBool> =>
    eb(
      'inboxes.id',
      'in',
      eb
        .selectFrom('address_claims')
        .select('address_claims.inbox_id')
        .where('address_claims.email', '=', email)
        .where('address_claims.released_at', 'is', null),
    );

/**
 * Includes inboxes of other environments than the request's, because a credential that is not bound to an environment
 * may select any.
 */
function canReachInbox(scope: Scope, inbox: InboxRow): boolean {
  return (
    canAccessInbox(scope, inbox.id) &&
    (!scope.environmentBound || inbox.environmentId === scope.environmentId)
  );
}

/** Serializes requests with the same client_id, so the second finds the inbox that the first created. */
async function findByClientId(
  db: Db,
  scope: Scope,
  clientId: string | undefined,
): Promise<InboxRow | undefined> {
  if (clientId === undefined) return undefined;
  await lockKey(db, 'inbox', scope.organizationId, clientId);
  const inbox = await db
    .selectFrom('inboxes')
    .select(columnsOf(InboxEntity))
    .where('org_id', '=', scope.organizationId)
    .where('client_id', '=', clientId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  if (!inbox || canReachInbox(scope, inbox)) return inbox;
  throw new AppError('already_exists', {
    detail: 'The organization has an inbox with this client_id that this credential cannot access.',
    fix: 'Choose another client_id, or use a credential with access to that inbox.',
  });
}

async function createInbox(
  db: Db,
  { organizationId, environmentId }: Scope,
  input: NewInbox,
  options: InboxServiceOptions,
): Promise<InboxRow> {
  const id = newId('inbox');
  const { email, username, domain, domainId } = await claimRequestedAddress(db, organizationId, {
    id,
    input,
    options,
  });
  return db
    .insertInto('inboxes')
    .values({
      id,
      org_id: organizationId,
      env_id: environmentId,
      email,
      username,
      domain,
      domain_id: domainId,
      display_name: input.displayName ?? input.name ?? null,
      client_id: input.clientId ?? null,
    })
    .returning(columnsOf(InboxEntity))
    .executeTakeFirstOrThrow(() => new Error('PostgreSQL returned no inbox'));
}

/** Claims the address in the transaction that creates the inbox, so no address is claimed without an inbox. */
async function claimRequestedAddress(
  db: Db,
  organizationId: string,
  { id, input, options }: { id: string; input: NewInbox; options: InboxServiceOptions },
): Promise<InboxAddress & { domainId: string | null }> {
  const isNamed = input.email !== undefined || input.username !== undefined;
  for (let attemptsLeft = isNamed ? 1 : MAX_RANDOM_ATTEMPTS; ; attemptsLeft -= 1) {
    const address = parseInboxAddress(input, options.mailDomain);
    const domainId = await findDomainId(db, organizationId, address.domain, options);
    if (await claimAddress(db, { email: address.email, organizationId, inboxId: id }))
      return { ...address, domainId };
    if (attemptsLeft === 1) throw addressTaken(address.email);
  }
}

/**
 * @returns null for the shared domain.
 * @throws AppError `domain_not_verified`.
 */
async function findDomainId(
  db: Db,
  organizationId: string,
  domainName: string,
  { mailDomain, lockVerifiedDomain }: InboxServiceOptions,
): Promise<string | null> {
  if (domainName === mailDomain.toLowerCase()) return null;
  const domainId = await lockVerifiedDomain(db, organizationId, domainName);
  if (domainId === null) throw domainNotVerified(domainName);
  return domainId;
}

function rejectFeedbackAddress(
  { email, username, domain }: NewInbox,
  { feedbackAddress, mailDomain }: Pick<InboxServiceOptions, 'feedbackAddress' | 'mailDomain'>,
): void {
  const address = email ?? `${username}@${domain ?? mailDomain}`;
  if (toAddressKey(address) === toAddressKey(feedbackAddress))
    throw invalid(
      email === undefined ? '/body/username' : '/body/email',
      'is reserved',
      'Choose another name, or omit it for a random one.',
    );
}

function rejectMixedVariants(input: NewInbox): void {
  const byUsername =
    input.username !== undefined || input.domain !== undefined || input.displayName !== undefined;
  const byEmail = input.email !== undefined || input.name !== undefined;
  if (byUsername && byEmail)
    throw invalid(
      '/body',
      'mixes the two ways to specify an inbox',
      'Use either username, domain and display_name, or email and name.',
    );
}

function credentialBoundToInbox(): AppError {
  return new AppError('permission_denied', {
    detail: 'This credential is bound to one inbox and cannot create another address.',
    fix: 'Use a key that is bound to the environment or the organization.',
  });
}
