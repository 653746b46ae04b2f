import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import type { DnsLookup } from '../../platform/dns.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { type Page, type PageRequest, pageOf } from '../../platform/pagination.ts';
import type { EventService } from '../events/event.service.ts';
import type { Scope } from '../identity/scope.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { releaseAddressesOfDomain } from '../inboxes/release-addresses.ts';
import { applyDnsCheck, type DomainWithKeys } from './apply-dns-check.ts';
import { type ClaimOptions, claimDomain, type NewDomain, requireWholeOrganization } from './claim-domain.ts';
import { DkimKeyEntity } from './dkim-key.entity.ts';
import { createDkimKeyPair } from './dkim-keys.ts';
import { checkRecords, type DnsCheck } from './dns-check.ts';
import { type Domain, DomainEntity } from './domain.entity.ts';
import { buildDomainRecords, type DomainRecord, type DomainRecordSettings } from './domain-records.ts';
import { rotateDkim } from './rotate-dkim.ts';
import { loadKeys } from './verification.service.ts';
import { signalCheckNow, startEpisode } from './verification-episode.ts';

/** A domain with the records it ought to publish. */
export interface DomainDetails {
  domain: Domain;
  records: DomainRecord[];
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
  look(scope: Scope, domainId: string): Promise<DnsCheck>;
  /**
   * Folds a look into the domain. Where a domain that has failed is still not as it should be, a new series of looks
   * begins.
   *
   * @throws AppError `not_found`, `permission_denied`.
   */
  verify(scope: Scope, domainId: string, checkDns: DnsCheck): Promise<DomainDetails>;
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

export interface DomainServiceOptions extends ClaimOptions {
  events: EventService;
  dns: DnsLookup;
  settings: DomainRecordSettings;
}

export function createDomainService(options: DomainServiceOptions): DomainService {
  const { database, outbox, dns, settings } = options;
  const detailsOf = ({ domain, keys }: DomainWithKeys): DomainDetails => ({
    domain,
    records: buildDomainRecords(domain, keys, settings),
  });

  return {
    async create(scope, input) {
      const { created, ...claimed } = await claimDomain(options, scope, input);
      return { ...detailsOf(claimed), created };
    },

    list: (scope, page) =>
      database.transaction(scope, async ({ em }) => {
        const domains = await em.find(
          DomainEntity,
          { $and: [await domainsInScope(em, scope), afterCursor(page)] },
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
        detailsOf(await loadKeys(em, await findDomain(em, scope, domainId))),
      ),

    async look(scope, domainId) {
      const { records } = await database.transaction(
        { organizationId: scope.organizationId },
        async ({ em }) => detailsOf(await loadKeys(em, await findManageableDomain(em, scope, domainId))),
      );
      return checkRecords(dns, records);
    },

    verify: (scope, domainId, look) =>
      database.transaction(scope, async (transaction) => {
        const domain = await lockDomain(transaction.em, scope, domainId);
        const locked = await loadKeys(transaction.em, domain);
        await verify(options, transaction, locked, look);
        return detailsOf(locked);
      }),

    async rotateDkim(scope, domainId) {
      await database.transaction(scope, ({ em }) => findManageableDomain(em, scope, domainId));
      const pair = await createDkimKeyPair();
      return database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const domain = await lockDomain(em, scope, domainId);
        await rotateDkim(options, transaction, await loadKeys(em, domain), pair);
        await em.flush();
        return detailsOf(await loadKeys(em, domain));
      });
    },

    delete: (scope, domainId) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const domain = await lockDomain(em, scope, domainId);
        await requireUnused(em, domain);
        await releaseAddressesOfDomain(em, domain);
        if (domain.nextCheckAt) signalCheckNow(transaction, outbox, domain);
        em.remove(domain);
      }),
  };
}

async function verify(
  { events, outbox, settings }: DomainServiceOptions,
  transaction: Transaction,
  locked: DomainWithKeys,
  look: DnsCheck,
): Promise<void> {
  const { domain, keys } = locked;
  const now = new Date();
  const ran = domain.nextCheckAt !== null;
  if (domain.verificationStatus === 'failed') domain.verificationStatus = 'pending';
  await applyDnsCheck({ transaction, events, settings, now, countMissedChecks: false }, locked, look);
  const waits =
    domain.verificationStatus === 'pending' ||
    (domain.verificationStatus === 'verified' && keys.some(({ state }) => state === 'pending'));
  if (waits === ran) return;
  if (waits) {
    domain.episode += 1;
    startEpisode(transaction, outbox, domain, now);
  } else {
    domain.nextCheckAt = null;
    signalCheckNow(transaction, outbox, domain);
  }
}

async function requireUnused(em: EntityManager, domain: Domain): Promise<void> {
  const inboxes = await em.count(InboxEntity, { domainId: domain.id, deletedAt: null });
  if (inboxes === 0) return;
  throw new AppError('conflict', {
    detail: `The domain has ${inboxes} inbox(es).`,
    fix: 'Delete its inboxes first; their messages stay readable.',
    extensions: { inboxes },
  });
}

async function findDomain(
  em: EntityManager,
  scope: Scope,
  domainId: string,
  lockMode?: LockMode.PESSIMISTIC_WRITE,
): Promise<Domain> {
  const domain = await em.findOne(
    DomainEntity,
    { $and: [{ id: domainId }, await domainsInScope(em, scope)] },
    lockMode === undefined ? {} : { lockMode },
  );
  if (!domain) throw notFound('domain', domainId);
  return domain;
}

/** For what changes a domain. One out of reach is not there; one in reach of a bound credential is not its to change. */
async function findManageableDomain(
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
  return findManageableDomain(em, scope, domainId, LockMode.PESSIMISTIC_WRITE);
}

/** Domains are the whole organization's. A credential bound to one inbox sees the domain of that inbox alone. */
async function domainsInScope(em: EntityManager, { organizationId, inboxId }: Scope) {
  if (inboxId === undefined) return { organizationId };
  const inbox = await em.findOne(InboxEntity, { id: inboxId, organizationId }, { fields: ['domainId'] });
  return { organizationId, id: inbox?.domainId ?? '' };
}

function afterCursor({ after: [id] = [], order }: PageRequest) {
  if (id === undefined) return {};
  return { id: order === 'asc' ? { $gt: id } : { $lt: id } };
}
