import { randomBytes } from 'node:crypto';
import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { DnsLookup } from '../../platform/dns.ts';
import { AppError, invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { type Page, type PageRequest, pageOf } from '../../platform/pagination.ts';
import type { Scope } from '../identity/scope.ts';
import { AddressClaimEntity } from '../inboxes/address-claim.entity.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { requireRoomFor } from '../usage/capped-things.ts';
import type { EventService } from '../webhooks/event.service.ts';
import { DkimKeyEntity } from './dkim-key.entity.ts';
import { createDkimKeyPair, type DkimKeyPair, dkimKeyContext, selectorsOf } from './dkim-keys.ts';
import { type Domain, DomainEntity } from './domain.entity.ts';
import { type DomainLook, lookAtRecords } from './domain-look.ts';
import { type DomainNameProblem, isWithinDomain, MAX_DOMAIN_LENGTH, parseDomainName } from './domain-name.ts';
import { type DomainRecord, type DomainRecordSettings, recordsOf } from './domain-records.ts';
import { beginEpisode, wakeEpisode } from './domain-verification.ts';
import { type LockedDomain, recordLook } from './record-look.ts';
import { withKeys } from './verification.service.ts';

/** A domain with the records it ought to publish. */
export interface DomainDetails {
  domain: Domain;
  records: DomainRecord[];
}

export interface NewDomain {
  domainName: string;
  clientId?: string;
}

export interface DomainService {
  /**
   * Claims a name and begins to look for its records, or finds the domain the organization made under the same
   * `clientId`, whatever else is asked for. Other organizations may claim the same name.
   *
   * @throws AppError `validation_error`; `plan_limit_reached`; `already_exists` where the organization has the name; `permission_denied` for
   * a credential that is not the whole organization's.
   */
  create(scope: Scope, input: NewDomain): Promise<DomainDetails & { created: boolean }>;
  list(scope: Scope, page: PageRequest): Promise<Page<DomainDetails>>;
  /** @throws AppError `not_found`. */
  get(scope: Scope, domainId: string): Promise<DomainDetails>;
  /**
   * Asks DNS for the domain's records. A step of its own before {@link verify}: no transaction is open meanwhile.
   *
   * @throws AppError `not_found`, `permission_denied`.
   */
  look(scope: Scope, domainId: string): Promise<DomainLook>;
  /**
   * Folds a look into the domain. Where a domain that has failed is still not as it should be, a new series of looks
   * begins.
   *
   * @throws AppError `not_found`, `permission_denied`.
   */
  verify(scope: Scope, domainId: string, look: DomainLook): Promise<DomainDetails>;
  /**
   * Makes a new DKIM key under the other selector. It signs from the moment its record is seen; until then the present
   * one does.
   *
   * @throws AppError `not_found`, `permission_denied`; `conflict` unless the domain is verified and no key waits.
   */
  rotateDkim(scope: Scope, domainId: string): Promise<DomainDetails>;
  /**
   * Afterwards the domain, its keys and its claim to the name are gone, and its verification ends.
   *
   * @throws AppError `not_found`, `permission_denied`; `conflict` while inboxes use it.
   */
  delete(scope: Scope, domainId: string): Promise<void>;
}

export interface DomainServiceOptions {
  database: Database;
  outbox: Outbox;
  events: EventService;
  dns: DnsLookup;
  secretBox: SecretBox;
  settings: DomainRecordSettings;
  /** Domains of the service itself, which nobody may claim, nor anything below them. */
  ownDomains: string[];
}

export function createDomainService(options: DomainServiceOptions): DomainService {
  const { database, outbox, dns, settings } = options;
  const detailsOf = ({ domain, keys }: LockedDomain): DomainDetails => ({
    domain,
    records: recordsOf(domain, keys, settings),
  });

  return {
    create: (scope, input) => create(options, scope, input),

    list: (scope, page) =>
      database.transaction(scope, async ({ em }) => {
        const domains = await em.find(
          DomainEntity,
          { $and: [await withinReach(em, scope), after(page)] },
          { orderBy: { id: page.order }, limit: page.limit + 1 },
        );
        const { items, next } = pageOf(domains, page.limit, ({ id }) => [id]);
        const keys = await em.find(
          DkimKeyEntity,
          { domainId: { $in: items.map(({ id }) => id) } },
          { orderBy: { createdAt: 'asc', selector: 'asc' } },
        );
        const keysOf = Map.groupBy(keys, ({ domainId }) => domainId);
        return {
          items: items.map((domain) => detailsOf({ domain, keys: keysOf.get(domain.id) ?? [] })),
          next,
        };
      }),

    get: (scope, domainId) =>
      database.transaction(scope, async ({ em }) =>
        detailsOf(await withKeys(em, await findDomain(em, scope, domainId))),
      ),

    async look(scope, domainId) {
      const { records } = await database.transaction(
        { organizationId: scope.organizationId },
        async ({ em }) => detailsOf(await withKeys(em, await findManaged(em, scope, domainId))),
      );
      return lookAtRecords(dns, records);
    },

    verify: (scope, domainId, look) =>
      database.transaction(scope, async (transaction) => {
        const domain = await lockDomain(transaction.em, scope, domainId);
        const locked = await withKeys(transaction.em, domain);
        await verify(options, transaction, locked, look);
        return detailsOf(locked);
      }),

    async rotateDkim(scope, domainId) {
      await database.transaction(scope, ({ em }) => findManaged(em, scope, domainId));
      const pair = await createDkimKeyPair();
      return database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const domain = await lockDomain(em, scope, domainId);
        await rotate(options, transaction, await withKeys(em, domain), pair);
        await em.flush();
        return detailsOf(await withKeys(em, domain));
      });
    },

    delete: (scope, domainId) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const domain = await lockDomain(em, scope, domainId);
        await refuseWhileUsed(em, domain);
        await releaseAddresses(em, domain);
        if (domain.nextLookAt) wakeEpisode(transaction, outbox, domain);
        em.remove(domain);
      }),
  };
}

async function create(
  options: DomainServiceOptions,
  scope: Scope,
  { domainName, clientId }: NewDomain,
): Promise<DomainDetails & { created: boolean }> {
  requireWholeOrganization(scope);
  const { database, settings, ownDomains } = options;
  const find = ({ em }: Transaction) => findByClientId(em, scope, clientId);
  const details = async ({ em }: Transaction, domain: Domain, created: boolean) => {
    const { keys } = await withKeys(em, domain);
    return { domain, records: recordsOf(domain, keys, settings), created };
  };
  const known = await database.transaction(scope, async (transaction) => {
    const found = await find(transaction);
    return found && details(transaction, found, false);
  });
  if (known) return known;
  const name = claimableName(domainName, ownDomains);
  const pair = await createDkimKeyPair();
  return database.transaction(scope, async (transaction) => {
    await lockClientId(transaction.em, scope, clientId);
    const found = await find(transaction);
    if (found) return details(transaction, found, false);
    await refuseSecondClaim(transaction.em, scope, name);
    await requireRoomFor(transaction.em, scope.organizationId, 'domains');
    const domain = addDomain(options, transaction, { scope, name, clientId, pair });
    await transaction.em.flush();
    return details(transaction, domain, true);
  });
}

/** Creations under one client_id wait for each other, so that the later one finds what the earlier one made. */
async function lockClientId(em: EntityManager, scope: Scope, clientId: string | undefined): Promise<void> {
  if (clientId === undefined) return;
  await em.execute('select pg_advisory_xact_lock(hashtextextended(?, 0))', [
    JSON.stringify(['domain', scope.organizationId, clientId]),
  ]);
}

async function findByClientId(
  em: EntityManager,
  { organizationId }: Scope,
  clientId: string | undefined,
): Promise<Domain | null> {
  return clientId === undefined ? null : em.findOne(DomainEntity, { organizationId, clientId });
}

async function refuseSecondClaim(
  em: EntityManager,
  { organizationId }: Scope,
  domainName: string,
): Promise<void> {
  const existing = await em.findOne(DomainEntity, { organizationId, domainName });
  if (!existing) return;
  throw new AppError('already_exists', {
    detail: `The organization has the domain ${domainName} already.`,
    fix: `Use the domain ${existing.id}, or delete it first.`,
  });
}

interface Claim {
  scope: Scope;
  name: string;
  clientId: string | undefined;
  pair: DkimKeyPair;
}

function addDomain(
  { outbox, secretBox }: DomainServiceOptions,
  transaction: Transaction,
  { scope, name, clientId, pair }: Claim,
): Domain {
  const { em } = transaction;
  const now = new Date();
  const domain = em.create(DomainEntity, {
    id: newId('domain'),
    organizationId: scope.organizationId,
    domainName: name,
    clientId: clientId ?? null,
    ownershipToken: randomBytes(16).toString('hex'),
    statusReason: null,
    observed: {},
    episodeStartedAt: now,
    nextLookAt: null,
    lastLookedAt: null,
    verifiedAt: null,
    checkedAt: null,
  });
  em.persist(domain);
  addKey({ em, secretBox }, domain, {
    selector: selectorsOf(domain.ownershipToken)[0],
    state: 'active',
    pair,
  });
  beginEpisode(transaction, outbox, domain, now);
  return domain;
}

function addKey(
  { em, secretBox }: { em: EntityManager; secretBox: SecretBox },
  domain: Domain,
  { selector, state, pair }: { selector: string; state: 'active' | 'pending'; pair: DkimKeyPair },
): void {
  em.persist(
    em.create(DkimKeyEntity, {
      domainId: domain.id,
      selector,
      organizationId: domain.organizationId,
      state,
      publicKey: pair.publicKey,
      privateKey: secretBox.seal(pair.privateKey, dkimKeyContext({ domainId: domain.id, selector })),
      retiredAt: null,
    }),
  );
}

async function verify(
  { events, outbox, settings }: DomainServiceOptions,
  transaction: Transaction,
  locked: LockedDomain,
  look: DomainLook,
): Promise<void> {
  const { domain, keys } = locked;
  const now = new Date();
  const ran = domain.nextLookAt !== null;
  if (domain.verificationStatus === 'failed') domain.verificationStatus = 'pending';
  await recordLook({ transaction, events, settings, now, countsMisses: false }, locked, look);
  const waits =
    domain.verificationStatus === 'pending' ||
    (domain.verificationStatus === 'verified' && keys.some(({ state }) => state === 'pending'));
  if (waits === ran) return;
  if (waits) {
    domain.episode += 1;
    beginEpisode(transaction, outbox, domain, now);
  } else {
    domain.nextLookAt = null;
    wakeEpisode(transaction, outbox, domain);
  }
}

async function rotate(
  { outbox, secretBox }: DomainServiceOptions,
  transaction: Transaction,
  { domain, keys }: LockedDomain,
  pair: DkimKeyPair,
): Promise<void> {
  if (domain.verificationStatus !== 'verified')
    throw new AppError('conflict', {
      detail: `The domain is ${domain.verificationStatus}; only a verified one has a key to rotate.`,
      fix: 'Publish its records and verify the domain first.',
    });
  const waiting = keys.find(({ state }) => state === 'pending');
  if (waiting)
    throw new AppError('conflict', {
      detail: `The key of selector ${waiting.selector} waits for its record already.`,
      fix: 'Publish that record; the key takes over as soon as it is seen.',
    });
  const { em } = transaction;
  const active = keys.find(({ state }) => state === 'active');
  const selector = selectorsOf(domain.ownershipToken).find((name) => name !== active?.selector) ?? '';
  // A key that retired a while ago gives up its selector: it signs nothing, and its mail has long arrived.
  for (const key of keys) if (key.selector === selector) em.remove(key);
  await em.flush();
  addKey({ em, secretBox }, domain, { selector, state: 'pending', pair });
  domain.episode += 1;
  beginEpisode(transaction, outbox, domain, new Date());
}

async function refuseWhileUsed(em: EntityManager, domain: Domain): Promise<void> {
  const inboxes = await em.count(InboxEntity, { domainId: domain.id, deletedAt: null });
  if (inboxes === 0) return;
  throw new AppError('conflict', {
    detail: `The domain has ${inboxes} inbox(es).`,
    fix: 'Delete its inboxes first; their messages stay readable.',
    extensions: { inboxes },
  });
}

/** The name may become another organization's; what is held back of it for 90 days would be in its way. */
async function releaseAddresses(em: EntityManager, domain: Domain): Promise<void> {
  await em.nativeUpdate(
    AddressClaimEntity,
    {
      organizationId: domain.organizationId,
      email: { $like: `%@${domain.domainName.replace(/[\\%_]/g, '\\$&')}` },
      releasedAt: { $ne: null },
    },
    { releasedAt: new Date(0) },
  );
}

async function findDomain(
  em: EntityManager,
  scope: Scope,
  domainId: string,
  lockMode?: LockMode.PESSIMISTIC_WRITE,
): Promise<Domain> {
  const domain = await em.findOne(
    DomainEntity,
    { $and: [{ id: domainId }, await withinReach(em, scope)] },
    lockMode === undefined ? {} : { lockMode },
  );
  if (!domain) throw notFound('domain', domainId);
  return domain;
}

/** For what changes a domain. One out of reach is not there; one in reach of a bound credential is not its to change. */
async function findManaged(
  em: EntityManager,
  scope: Scope,
  domainId: string,
  lockMode?: LockMode.PESSIMISTIC_WRITE,
): Promise<Domain> {
  const domain = await findDomain(em, scope, domainId, lockMode);
  requireWholeOrganization(scope);
  return domain;
}

function lockDomain(em: EntityManager, scope: Scope, domainId: string): Promise<Domain> {
  return findManaged(em, scope, domainId, LockMode.PESSIMISTIC_WRITE);
}

/** Domains are the whole organization's. A credential bound to one inbox sees the domain of that inbox alone. */
async function withinReach(em: EntityManager, { organizationId, inboxId }: Scope) {
  if (inboxId === undefined) return { organizationId };
  const inbox = await em.findOne(InboxEntity, { id: inboxId, organizationId }, { fields: ['domainId'] });
  return { organizationId, id: inbox?.domainId ?? '' };
}

function after({ after: [id] = [], order }: PageRequest) {
  if (id === undefined) return {};
  return { id: order === 'asc' ? { $gt: id } : { $lt: id } };
}

function requireWholeOrganization(scope: Scope): void {
  if (!scope.environmentBound && scope.inboxId === undefined) return;
  throw new AppError('permission_denied', {
    detail: 'Domains belong to the whole organization; this credential is bound to a part of it.',
    fix: 'Use a key that is bound to neither an environment nor an inbox.',
    extensions: { permission: 'domains:manage' },
  });
}

const NAME_PROBLEMS: Record<DomainNameProblem, [string, string]> = {
  malformed: ['is not a domain name', 'Give a name such as mail.example.com, without scheme, port or path.'],
  too_long: [
    `is longer than ${MAX_DOMAIN_LENGTH} characters`,
    'Give a shorter name; records are published below it.',
  ],
  address: ['is an IP address', 'Give a domain name.'],
  public_suffix: ['is a registry, not a domain', 'Give a domain you have registered.'],
};

function claimableName(given: string, ownDomains: string[]): string {
  const parsed = parseDomainName(given);
  if ('problem' in parsed) throw invalid('/body/domain_name', ...NAME_PROBLEMS[parsed.problem]);
  if (ownDomains.some((own) => isWithinDomain(parsed.name, own)))
    throw invalid(
      '/body/domain_name',
      'belongs to the service itself',
      'Inboxes on the shared domain need no domain of their own; give one of yours.',
    );
  return parsed.name;
}
