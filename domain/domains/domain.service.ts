import { sql } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { DnsLookup } from '../../platform/dns.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import type { ChangeOf } from '../audit/audit-actions.ts';
import { recordAudit, replacedValues } from '../audit/record-audit.ts';
import type { EventService } from '../events/event.service.ts';
import type { Scope } from '../identity/scope.ts';
import { releaseAddressesOfDomain } from '../inboxes/address-claims.ts';
import { lockActiveInbox } from '../inboxes/find-inbox.ts';
import { applyDnsCheck } from './apply-dns-check.ts';
import { type ClaimOptions, claimDomain, type NewDomain, requireWholeOrganization } from './claim-domain.ts';
import { createDkimKeyPair } from './dkim-keys.ts';
import { checkRecords, type DnsCheck } from './dns-check.ts';
import { type Domain, DomainEntity } from './domain.entity.ts';
import { buildDomainRecords, type DomainRecord, type DomainRecordSettings } from './domain-records.ts';
import { type DomainWithKeys, findKeys, loadKeys, saveDomain } from './domain-with-keys.ts';
import { checkedStateOf, recordDnsChanges } from './record-dns-changes.ts';
import { rotateDkim } from './rotate-dkim.ts';
import { awaitsRecords } from './verification.service.ts';
import { signalCheckNow, startVerification } from './verification-run.ts';

export interface DomainFilter {
  verified?: boolean | undefined;
}

/** A domain with the records it should publish. */
export interface DomainDetails {
  domain: Domain;
  records: DomainRecord[];
}

export interface DomainServiceOptions extends ClaimOptions {
  events: EventService;
  dns: DnsLookup;
  settings: DomainRecordSettings;
}

export type DomainService = ReturnType<typeof createDomainService>;

export function createDomainService(options: DomainServiceOptions) {
  const { database, outbox, dns, settings } = options;
  const toDetails = ({ domain, keys }: DomainWithKeys): DomainDetails => ({
    domain,
    records: buildDomainRecords(domain, keys, settings),
  });

  return {
    /**
     * Claims a name and starts checking its records, or returns the domain created earlier with the same `clientId`,
     * regardless of the other input. Other organizations may claim the same name.
     *
     * @throws AppError `validation_error`; `plan_limit_reached`; `already_exists` if the organization already has the name;
     * `permission_denied` for a credential that is bound to an environment or inbox.
     */
    async create(scope: Scope, input: NewDomain): Promise<DomainDetails & { created: boolean }> {
      const { created, ...claimed } = await claimDomain(options, scope, input);
      return { ...toDetails(claimed), created };
    },

    list: (scope: Scope, filter: DomainFilter, page: PageRequest): Promise<Page<DomainDetails>> =>
      database.read(scope, async ({ db }) => {
        const { items, next } = await findPage(selectDomainsInScope(db, scope, filter), 'domains.id', page);
        const keys = await findKeys(
          db,
          items.map(({ id }) => id),
        );
        const keysOf = Map.groupBy(keys, ({ domainId }) => domainId);
        return {
          items: items.map((domain) => toDetails({ domain, keys: keysOf.get(domain.id) ?? [] })),
          next,
        };
      }),

    /** @throws AppError `not_found`. */
    get: (scope: Scope, domainId: string): Promise<DomainDetails> =>
      database.read(scope, async ({ db }) =>
        toDetails(await loadKeys(db, await findDomain(db, scope, domainId))),
      ),

    /**
     * Queries DNS for the domain's records. Separate from `verify`, so that no transaction is open during the queries.
     *
     * @throws AppError `not_found`, `permission_denied`.
     */
    async checkDns(scope: Scope, domainId: string): Promise<DnsCheck> {
      const { records } = await database.transaction(
        { organizationId: scope.organizationId },
        async ({ db }) => toDetails(await loadKeys(db, await findManageableDomain(db, scope, domainId))),
      );
      return checkRecords(dns, records);
    },

    /**
     * Applies a DNS check to the domain. If a failed domain is still not verified, a new series of checks starts.
     *
     * @throws AppError `not_found`, `permission_denied`.
     */
    verify: (scope: Scope, domainId: string, dnsCheck: DnsCheck): Promise<DomainDetails> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const locked = await loadKeys(db, await lockDomain(db, scope, domainId));
        const before = checkedStateOf(locked);
        await applyRequestedCheck(options, transaction, locked, dnsCheck);
        await recordDnsChanges(db, before, locked);
        await saveDomain(db, locked.domain);
        return toDetails(locked);
      }),

    /**
     * Chooses the inbox that receives mail to addresses of the domain that no inbox has; null: such mail is refused.
     *
     * @throws AppError `not_found` for the domain or the inbox, `inbox_suspended`, `permission_denied`; `domain_not_verified`
     * unless the domain is verified or the inbox is null.
     */
    setCatchAll: (scope: Scope, domainId: string, inboxId: string | null): Promise<DomainDetails> =>
      database.transaction(scope, async ({ db }) => {
        // Before the domain, as the deletion of an inbox does.
        if (inboxId !== null) await lockActiveInbox(db, scope, inboxId);
        const locked = await loadKeys(db, await lockDomain(db, scope, domainId));
        const { domain } = locked;
        if (inboxId !== null && domain.verificationStatus !== 'verified')
          throw new AppError('domain_not_verified', {
            detail: `The domain ${domain.domainName} is not verified.`,
            fix: 'Publish its records, then verify it: POST /api/v1/domains/{id}/verify.',
          });
        const updated = await db
          .updateTable('domains')
          .set({ catch_all_inbox_id: inboxId, updated_at: sql`now()` })
          .where('id', '=', domainId)
          .returning(columnsOf(DomainEntity))
          .executeTakeFirstOrThrow(() => notFound('domain', domainId));
        const change = { catch_all_inbox_id: inboxId };
        const before = { catch_all_inbox_id: domain.catchAllInboxId };
        await audit(db, scope, domain, 'updated', { ...change, ...replacedValues(before, change) });
        return toDetails({ ...locked, domain: updated });
      }),

    /**
     * Creates a new DKIM key under the other selector. It becomes active once its record is found; until then the current
     * key signs.
     *
     * @throws AppError `not_found`, `permission_denied`; `conflict` unless the domain is verified and has no pending key.
     */
    async rotateDkim(scope: Scope, domainId: string): Promise<DomainDetails> {
      await database.transaction(scope, ({ db }) => findManageableDomain(db, scope, domainId));
      const pair = await createDkimKeyPair();
      return database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const domain = await lockDomain(db, scope, domainId);
        await rotateDkim(options, transaction, await loadKeys(db, domain), pair);
        await saveDomain(db, domain);
        await audit(db, scope, domain, 'dkim_rotated');
        return toDetails(await loadKeys(db, domain));
      });
    },

    /**
     * Deletes the domain, its keys and its claim to the name, and ends its verification.
     *
     * @throws AppError `not_found`, `permission_denied`; `conflict` while inboxes use it.
     */
    delete: (scope: Scope, domainId: string): Promise<void> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const domain = await lockDomain(db, scope, domainId);
        await requireUnused(db, domain);
        await releaseAddressesOfDomain(db, domain);
        if (domain.nextCheckAt) signalCheckNow(transaction, outbox, domain);
        await audit(db, scope, domain, 'deleted');
        await db.deleteFrom('domains').where('id', '=', domainId).execute();
      }),
  };
}

/** Its domains then refuse mail to addresses that no inbox has. */
export async function forgetCatchAllInbox(db: Db, inboxId: string): Promise<void> {
  await db
    .updateTable('domains')
    .set({ catch_all_inbox_id: null, updated_at: sql`now()` })
    .where('catch_all_inbox_id', '=', inboxId)
    .execute();
}

function audit(
  db: Db,
  scope: Scope,
  { id, domainName }: Domain,
  change: ChangeOf<'domain'>,
  details: Record<string, unknown> = {},
): Promise<void> {
  return recordAudit(db, scope, {
    action: `domain.${change}`,
    resourceType: 'domain',
    resourceId: id,
    details: { domain_name: domainName, ...details },
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
    domain.generation += 1;
    startVerification(transaction, outbox, domain, now);
  } else {
    domain.nextCheckAt = null;
    signalCheckNow(transaction, outbox, domain);
  }
}

async function requireUnused(db: Db, { id, organizationId, domainName }: Domain): Promise<void> {
  const found = await db
    .selectFrom('inboxes')
    .select((eb) => eb.fn.countAll<number>().as('inboxes'))
    .where('org_id', '=', organizationId)
    .where((eb) =>
      eb.or([
        eb('domain_id', '=', id),
        sql<boolean>`exists (select from unnest(aliases) alias where split_part(alias, '@', 2) = ${domainName})`,
      ]),
    )
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  const inboxes = found?.inboxes ?? 0;
  if (inboxes === 0) return;
  throw new AppError('conflict', {
    detail: `The domain has ${inboxes} inbox(es), with their address or an alias.`,
    fix: 'Delete its inboxes (DELETE /api/v1/inboxes/{id}), whose messages stay readable, or remove the aliases (PATCH /api/v1/inboxes/{id}) first.',
    extensions: { inboxes },
  });
}

async function findDomain(db: Db, scope: Scope, domainId: string, { locked = false } = {}): Promise<Domain> {
  const domain = await selectDomainsInScope(db, scope)
    .where('id', '=', domainId)
    .$if(locked, (query) => query.forUpdate())
    .executeTakeFirst();
  if (!domain) throw notFound('domain', domainId);
  return domain;
}

/** For changes. A bound credential may read the domain it sees but gets `permission_denied` here. */
async function findManageableDomain(
  db: Db,
  scope: Scope,
  domainId: string,
  options?: { locked: boolean },
): Promise<Domain> {
  const domain = await findDomain(db, scope, domainId, options);
  requireWholeOrganization(scope);
  return domain;
}

const lockDomain = (db: Db, scope: Scope, domainId: string): Promise<Domain> =>
  findManageableDomain(db, scope, domainId, { locked: true });

/** Domains belong to the organization. A credential bound to one inbox sees only that inbox's domain. */
export function selectDomainsInScope(
  db: Db,
  { organizationId, inboxId }: Scope,
  { verified }: DomainFilter = {},
) {
  const own = db
    .selectFrom('domains')
    .select(columnsOf(DomainEntity))
    .where('domains.org_id', '=', organizationId)
    .$if(verified !== undefined, (query) =>
      query.where('domains.verification_status', verified ? '=' : '<>', 'verified'),
    );
  if (inboxId === undefined) return own;
  return own.where('domains.id', 'in', (eb) =>
    eb
      .selectFrom('inboxes')
      .select('inboxes.domain_id')
      .where('inboxes.id', '=', inboxId)
      .where('inboxes.org_id', '=', organizationId)
      .$narrowType<{ domain_id: string }>(),
  );
}
