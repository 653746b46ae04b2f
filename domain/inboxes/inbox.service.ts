import type { FilterQuery } from '@mikro-orm/core';
import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import type { Row } from '../../platform/database/find-rows.ts';
import { AppError, invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { canAccessInbox, type Scope } from '../identity/scope.ts';
import { toAddressKey } from '../mime/address-key.ts';
import { requireOn } from '../toggles/find-toggle.ts';
import { requireQuota } from '../usage/resource-quotas.ts';
import { AddressClaimEntity } from './address-claim.entity.ts';
import {
  findActiveInbox,
  findInbox,
  findInboxIncludingDeleted,
  readPresentInbox,
  requireActive,
} from './find-inbox.ts';
import { type Inbox, InboxEntity } from './inbox.entity.ts';
import {
  type AddressRequest,
  domainNotVerified,
  type InboxAddress,
  parseInboxAddress,
} from './inbox-address.ts';
import { buildPurgeStart } from './purge-start.ts';

/** Either variant of the specification: `username` with `domain` and `display_name`, or `email` with `name`. */
export interface NewInbox extends AddressRequest {
  displayName?: string;
  name?: string;
  clientId?: string;
}

export interface InboxService {
  /**
   * Creates an inbox, or returns the one of the organization created earlier with the same `clientId`, in whichever
   * environment it is, regardless of the other input.
   *
   * @throws AppError `already_exists` for an address that is taken, or a `clientId` of an inbox that the credential
   * cannot access;
   * `plan_limit_reached`, `domain_not_verified`, `switched_off`, `validation_error`; `permission_denied` for a credential bound to another
   * inbox.
   */
  create(scope: Scope, input: NewInbox): Promise<{ inbox: Inbox; created: boolean }>;
  /** @param filter.email the address of an inbox, case-insensitive. */
  list(scope: Scope, filter: { email?: string | undefined }, page: PageRequest): Promise<Page<Row<Inbox>>>;
  /** Also one that is being purged. @throws AppError `not_found`. */
  get(scope: Scope, inboxId: string): Promise<Row<Inbox>>;
  /** @throws AppError `not_found`, `inbox_suspended`. */
  update(scope: Scope, inboxId: string, patch: { displayName?: string | null }): Promise<Inbox>;
  /**
   * Resumes paused sending. Messages sent earlier do not pause the inbox again. Does nothing if sending is not paused.
   *
   * @throws AppError `not_found`.
   */
  resume(scope: Scope, inboxId: string): Promise<Inbox>;
  /**
   * Deletes the inbox and cancels its queued messages. The other messages stay readable. With `purge`, a workflow deletes
   * them, even if the inbox is already deleted; until then it is `purging`, and afterwards not found. The address stays reserved for the organization for 90 days.
   *
   * @throws AppError `not_found`.
   */
  delete(scope: Scope, inboxId: string, options: { purge: boolean }): Promise<void>;
}

export interface InboxServiceOptions {
  database: Database;
  outbox: Outbox;
  /** The shared domain, on which every organization may create inboxes. */
  mailDomain: string;
  /** Receives feedback reports (complaints); lower case. No inbox may use it. */
  feedbackAddress: string;
  /**
   * Finds a domain that this organization has verified, and locks it against deletion until the transaction ends. Injected,
   * because `inboxes` must not import `domains`.
   */
  lockVerifiedDomain(em: EntityManager, organizationId: string, domainName: string): Promise<string | null>;
  /** Called in the transaction that deletes the inbox. Other rooms cancel their work for the inbox here. */
  onDelete(transaction: Transaction, inboxId: string): Promise<void>;
}

/** Maximum attempts to find a free random address. */
const MAX_RANDOM_ATTEMPTS = 5;

export function createInboxService(options: InboxServiceOptions): InboxService {
  const { database, outbox, onDelete } = options;
  return {
    create: (scope, input) =>
      database.transaction(scope, async (transaction) => {
        rejectMixedVariants(input);
        rejectFeedbackAddress(input, options);
        const existing = await findByClientId(transaction.em, scope, input.clientId);
        if (existing) return { inbox: existing, created: false };
        if (scope.inboxId !== undefined) throw credentialBoundToInbox();
        await requireOn(transaction.em, 'inbox_creation');
        await requireQuota(transaction.em, scope.organizationId, 'inboxes');
        const inbox = await createInbox(transaction, scope, input, options);
        await audit(transaction.em, scope, inbox, 'created');
        return { inbox, created: true };
      }),

    list: (scope, { email }, page) =>
      database.read(scope, (reader) =>
        findPage(reader, InboxEntity, {
          where: inboxesInScope(scope, email),
          page,
        }),
      ),

    get: (scope, inboxId) => database.read(scope, (reader) => readPresentInbox(reader, scope, inboxId)),

    update: (scope, inboxId, { displayName }) =>
      database.transaction(scope, async ({ em }) => {
        const inbox = await findActiveInbox(em, scope, inboxId);
        if (displayName !== undefined) inbox.displayName = displayName;
        await audit(em, scope, inbox, 'updated');
        return inbox;
      }),

    resume: (scope, inboxId) =>
      database.transaction(scope, async ({ em }) => {
        const inbox = await findActiveInbox(em, scope, inboxId);
        if (!inbox.sendPaused) return inbox;
        inbox.sendPaused = false;
        inbox.sendPausedReason = null;
        inbox.sendResumedAt = new Date();
        await audit(em, scope, inbox, 'sending_resumed');
        return inbox;
      }),

    delete: (scope, inboxId, { purge }) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const inbox = await (purge ? findInboxIncludingDeleted : findInbox)(em, scope, inboxId);
        if (inbox.purgedAt) throw notFound('inbox', inboxId);
        requireActive(inbox);
        if (!inbox.deletedAt) {
          await markDeleted(transaction, inbox);
          await onDelete(transaction, inbox.id);
        }
        await audit(em, scope, inbox, purge ? 'purged' : 'deleted');
        if (!purge || inbox.purgeRequestedAt) return;
        inbox.purgeRequestedAt = new Date();
        outbox.enqueue(transaction, inbox.organizationId, { start: buildPurgeStart(inbox) });
      }),
  };
}

function audit(em: EntityManager, scope: Scope, { id, email }: Inbox, change: string): Promise<void> {
  return recordAudit(em, scope, {
    action: `inbox.${change}`,
    resourceType: 'inbox',
    resourceId: id,
    details: { email },
  });
}

async function markDeleted({ em }: Transaction, inbox: Inbox): Promise<void> {
  inbox.deletedAt = new Date();
  await em.nativeUpdate(
    AddressClaimEntity,
    { email: inbox.email, inboxId: inbox.id },
    { releasedAt: new Date() },
  );
}

function inboxesInScope(
  { organizationId, environmentId, inboxId }: Scope,
  email: string | undefined,
): FilterQuery<Inbox> {
  return {
    organizationId,
    environmentId,
    deletedAt: null,
    ...(inboxId === undefined ? {} : { id: inboxId }),
    ...(email === undefined ? {} : { email: email.toLowerCase() }),
  };
}

/** Also in another environment than the request's: a credential that is not bound to one may select it. */
function canReachInbox(scope: Scope, inbox: Inbox): boolean {
  return (
    canAccessInbox(scope, inbox.id) &&
    (!scope.environmentBound || inbox.environmentId === scope.environmentId)
  );
}

/** Serializes requests with the same client_id, so the second finds the inbox that the first created. */
async function findByClientId(
  em: EntityManager,
  scope: Scope,
  clientId: string | undefined,
): Promise<Inbox | null> {
  if (clientId === undefined) return null;
  await lockKey(em, 'inbox', scope.organizationId, clientId);
  const inbox = await em.findOne(InboxEntity, {
    organizationId: scope.organizationId,
    clientId,
    deletedAt: null,
  });
  if (!inbox || canReachInbox(scope, inbox)) return inbox;
  throw new AppError('already_exists', {
    detail: 'The organization has an inbox with this client_id that this credential cannot access.',
    fix: 'Choose another client_id, or use a credential with access to that inbox.',
  });
}

async function createInbox(
  { em }: Transaction,
  scope: Scope,
  input: NewInbox,
  options: InboxServiceOptions,
): Promise<Inbox> {
  const id = newId('inbox');
  const address = await claimAddress(em, scope, { id, input, options });
  const inbox = em.create(InboxEntity, {
    id,
    organizationId: scope.organizationId,
    environmentId: scope.environmentId,
    ...address,
    displayName: input.displayName ?? input.name ?? null,
    clientId: input.clientId ?? null,
    sendPausedReason: null,
    deletedAt: null,
  });
  em.persist(inbox);
  await em.flush();
  return inbox;
}

/** Claims the address in the transaction that creates the inbox, so no address is claimed without an inbox. */
async function claimAddress(
  em: EntityManager,
  scope: Scope,
  { id, input, options }: { id: string; input: NewInbox; options: InboxServiceOptions },
): Promise<InboxAddress & { domainId: string | null }> {
  const isNamed = input.email !== undefined || input.username !== undefined;
  for (let attemptsLeft = isNamed ? 1 : MAX_RANDOM_ATTEMPTS; attemptsLeft > 0; attemptsLeft -= 1) {
    const address = parseInboxAddress(input, options.mailDomain);
    const domainId = await findDomainId(em, scope, address.domain, options);
    const [row] = await em.execute<{ claimed: boolean }[]>(
      sql`select claim_address(${address.email}, ${scope.organizationId}, ${id}) as claimed`,
    );
    if (row?.claimed) return { ...address, domainId };
  }
  throw new AppError('already_exists', {
    detail: 'The address is taken.',
    fix: 'Choose another name, or omit it for a random one.',
  });
}

/**
 * @returns null for the shared domain.
 * @throws AppError `domain_not_verified`.
 */
async function findDomainId(
  em: EntityManager,
  { organizationId }: Scope,
  domainName: string,
  { mailDomain, lockVerifiedDomain }: InboxServiceOptions,
): Promise<string | null> {
  if (domainName === mailDomain.toLowerCase()) return null;
  const domainId = await lockVerifiedDomain(em, organizationId, domainName);
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
    detail: 'This credential is bound to one inbox and cannot create another.',
    fix: 'Use a key that is bound to the environment or the organization.',
  });
}
