import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import { findRow, findRows, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import type { DnsLookup } from '../../platform/dns.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { EventService } from '../events/event.service.ts';
import type { Scope } from '../identity/scope.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { releaseAddressesOfDomain } from '../inboxes/release-addresses.ts';
import { applyDnsCheck, type DomainWithKeys } from './apply-dns-check.ts';
import { type ClaimOptions, claimDomain, type NewDomain, requireWholeOrganization } from './claim-domain.ts';
import { type DkimKey, DkimKeyEntity } from './dkim-key.entity.ts';
import { createDkimKeyPair } from './dkim-keys.ts';
import { checkRecords, type DnsCheck } from './dns-check.ts';
import { type Domain, DomainEntity } from './domain.entity.ts';
import { buildDomainRecords, type DomainRecord, type DomainRecordSettings } from './domain-records.ts';
import { rotateDkim } from './rotate-dkim.ts';
import { awaitsRecords, loadKeys } from './verification.service.ts';
import { signalCheckNow, startEpisode } from './verification-episode.ts';

/** A domain with the records it should publish. */
export interface DomainDetails {
  domain: Row<Domain>;
  records: DomainRecord[];
}

/** A domain and its keys, as read. */
interface ReadDomain {
  domain: Row<Domain>;
  keys: readonly Row<DkimKey>[];
}

export interface DomainService {
  /**
   * Claims a name and starts checking its records, or returns the domain created earlier with the same `clientId`,
   * regardless of the other input. Other organizations may claim the same name.
   *
   * @throws AppError `validation_error`; `plan_limit_reached`; `already_exists` if the organization already has the name;
   * `permission_denied` for a credential that is bound to an environment or inbox.
   */
  create(scope: Scope, input: NewDomain): Promise<DomainDetails & { created: boolean }>;
  list(scope: Scope, page: PageRequest): Promise<Page<DomainDetails>>;
  /** @throws AppError `not_found`. */
  get(scope: Scope, domainId: string): Promise<DomainDetails>;
  /**
   * Queries DNS for the domain's records. Separate from {@link verify}, so that no transaction is open meanwhile.
   *
   * @throws AppError `not_found`, `permission_denied`.
   */
  checkDns(scope: Scope, domainId: string): Promise<DnsCheck>;
  /**
   * Applies a DNS check to the domain. If a failed domain is still not verified, a new series of checks starts.
   *
   * @throws AppError `not_found`, `permission_denied`.
   */
  verify(scope: Scope, domainId: string, dnsCheck: DnsCheck): Promise<DomainDetails>;
  /**
   * Creates a new DKIM key under the other selector. It becomes active once its record is found; until then the current
   * key signs.
   *
   * @throws AppError `not_found`, `permission_denied`; `conflict` unless the domain is verified and has no pending key.
   */
  rotateDkim(scope: Scope, domainId: string): Promise<DomainDetails>;
  /**
   * Deletes the domain, its keys and its claim to the name, and ends its verification.
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
  const toDetails = ({ domain, keys }: ReadDomain): DomainDetails => ({
    domain,
    records: buildDomainRecords(domain, keys, settings),
  });

  return {
    async create(scope, input) {
      const { created, ...claimed } = await claimDomain(options, scope, input);
      return { ...toDetails(claimed), created };
    },

    list: (scope, page) =>
      database.read(scope, async (reader) => {
        const where = await domainsInScope(reader, scope);
        const { items, next } = await findPage(reader, DomainEntity, { where, page });
        const keys = await findKeys(reader, items);
        const keysOf = Map.groupBy(keys, ({ domainId }) => domainId);
        return {
          items: items.map((domain) => toDetails({ domain, keys: keysOf.get(domain.id) ?? [] })),
          next,
        };
      }),

    get: (scope, domainId) =>
      database.read(scope, async (reader) => {
        const where = [{ id: domainId }, await domainsInScope(reader, scope)];
        const domain = await findRow(reader, DomainEntity, { where });
        if (!domain) throw notFound('domain', domainId);
        return toDetails({ domain, keys: await findKeys(reader, [domain]) });
      }),

    async checkDns(scope, domainId) {
      const { records } = await database.transaction(
        { organizationId: scope.organizationId },
        async ({ em }) => toDetails(await loadKeys(em, await findManageableDomain(em, scope, domainId))),
      );
      return checkRecords(dns, records);
    },

    verify: (scope, domainId, dnsCheck) =>
      database.transaction(scope, async (transaction) => {
        const domain = await lockDomain(transaction.em, scope, domainId);
        const locked = await loadKeys(transaction.em, domain);
        await applyRequestedCheck(options, transaction, locked, dnsCheck);
        return toDetails(locked);
      }),

    async rotateDkim(scope, domainId) {
      await database.transaction(scope, ({ em }) => findManageableDomain(em, scope, domainId));
      const pair = await createDkimKeyPair();
      return database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const domain = await lockDomain(em, scope, domainId);
        await rotateDkim(options, transaction, await loadKeys(em, domain), pair);
        await em.flush();
        await audit(em, scope, domain, 'dkim_rotated');
        return toDetails(await loadKeys(em, domain));
      });
    },

    delete: (scope, domainId) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const domain = await lockDomain(em, scope, domainId);
        await requireUnused(em, domain);
        await releaseAddressesOfDomain(transaction.db, domain);
        if (domain.nextCheckAt) signalCheckNow(transaction, outbox, domain);
        await audit(em, scope, domain, 'deleted');
        em.remove(domain);
      }),
  };
}

function audit(em: EntityManager, scope: Scope, { id, domainName }: Domain, change: string): Promise<void> {
  return recordAudit(em, scope, {
    action: `domain.${change}`,
    resourceType: 'domain',
    resourceId: id,
    details: { domain_name: domainName },
  });
}

/** Applies a check and starts or ends the series of checks as the new status requires. */
async function applyRequestedCheck(
  { events, outbox, settings }: DomainServiceOptions,
  transaction: Transaction,
  locked: DomainWithKeys,
  dnsCheck: DnsCheck,
): Promise<void> {
  const { domain } = locked;
  const now = new Date();
  const wasRunning = domain.nextCheckAt !== null;
  if (domain.verificationStatus === 'failed') domain.verificationStatus = 'pending';
  await applyDnsCheck({ transaction, events, settings, now, countMissedChecks: false }, locked, dnsCheck);
  const needsRun = awaitsRecords(locked);
  if (needsRun === wasRunning) return;
  if (needsRun) {
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

/** For changes. A bound credential may read the domain it sees but gets `permission_denied` here. */
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

/** The keys of all domains, oldest first. */
function findKeys(reader: RowReader, domains: readonly Row<Domain>[]): Promise<Row<DkimKey>[]> {
  return findRows(reader, DkimKeyEntity, {
    where: { domainId: { $in: domains.map(({ id }) => id) } },
    orderBy: { createdAt: 'asc', selector: 'asc' },
  });
}

/** Domains belong to the organization. A credential bound to one inbox sees only that inbox's domain. */
async function domainsInScope(reader: RowReader, { organizationId, inboxId }: Scope) {
  if (inboxId === undefined) return { organizationId };
  const inbox = await findRow(reader, InboxEntity, { where: { id: inboxId, organizationId } });
  return { organizationId, id: inbox?.domainId ?? '' };
}
