import { sql } from 'kysely';
import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { EventService } from '../events/event.service.ts';
import { DEFAULT_ENVIRONMENT_SLUG } from '../organizations/environment.entity.ts';
import type { DnsCheck } from './dns-check.ts';
import type { Domain, DomainStatus } from './domain.entity.ts';
import {
  buildDomainRecords,
  type DomainRecord,
  type DomainRecordSettings,
  dkimRecordKey,
} from './domain-records.ts';
import type { DomainWithKeys, PublicDkimKey } from './domain-with-keys.ts';

/** Consecutive rechecks that may miss a required record. One more miss fails the verified domain. */
const MAX_MISSED_CHECKS = 2;

export interface DnsCheckContext {
  transaction: Transaction;
  events: EventService;
  settings: DomainRecordSettings;
  now: Date;
  /** Whether a miss counts toward failure. True only for the daily recheck, so that manual checks cannot accelerate it. */
  countMissedChecks: boolean;
}

/**
 * Applies the result of a DNS check to the domain: stores what is published in `observed`, activates a pending DKIM key
 * whose record was found, and updates the statuses. A pending domain is verified by one check that finds every required
 * record; a verified one fails after several consecutive rechecks that miss one. Unanswered queries change nothing.
 *
 * The caller has locked the row and saves the domain. Keys are written here.
 */
export async function applyDnsCheck(
  context: DnsCheckContext,
  locked: DomainWithKeys,
  dnsCheck: DnsCheck,
): Promise<void> {
  const { domain, keys } = locked;
  domain.lastCheckedAt = context.now;
  await activatePublishedKey(context.transaction.db, keys, dnsCheck, context.now);
  const records = buildDomainRecords(domain, keys, context.settings);
  domain.observed = Object.fromEntries(
    records.flatMap(({ key }) => {
      const observation = dnsCheck.get(key) ?? domain.observed[key];
      return observation ? [[key, observation]] : [];
    }),
  );
  if (domain.verificationStatus === 'verified') return recheckVerified(context, domain, records, dnsCheck);
  updateRecordStatuses(domain, records, dnsCheck);
  const required = records.filter((record) => record.required);
  if (required.every(({ key }) => dnsCheck.get(key)?.status === 'valid')) {
    settleDmarc(domain, dnsCheck);
    await claimAndVerify(context, domain);
  } else domain.statusReason = describeMissing(domain, records, dnsCheck);
}

async function activatePublishedKey(
  db: Db,
  keys: PublicDkimKey[],
  dnsCheck: DnsCheck,
  now: Date,
): Promise<void> {
  const pending = keys.find(({ state }) => state === 'pending');
  if (!pending || dnsCheck.get(dkimRecordKey(pending))?.status !== 'valid') return;
  const change = async (key: PublicDkimKey, changed: Pick<PublicDkimKey, 'state' | 'retiredAt'>) => {
    Object.assign(key, changed);
    await db
      .updateTable('dkim_keys')
      .set({ state: changed.state, retired_at: changed.retiredAt })
      .where('domain_id', '=', key.domainId)
      .where('selector', '=', key.selector)
      .execute();
  };
  for (const key of keys)
    if (key.state === 'active') await change(key, { state: 'retiring', retiredAt: now });
  await change(pending, { state: 'active', retiredAt: pending.retiredAt });
}

/** Purposes that have their own status. The DKIM status is the status of the active key. */
const STATUS_FIELDS = { spf: 'spfStatus', dkim: 'dkimStatus', dmarc: 'dmarcStatus' } as const;

function statusFieldOf({ purpose, required }: DomainRecord) {
  if (purpose === 'ownership' || purpose === 'mx' || (purpose === 'dkim' && !required)) return null;
  return STATUS_FIELDS[purpose];
}

function updateRecordStatuses(domain: Domain, records: DomainRecord[], dnsCheck: DnsCheck): void {
  for (const record of records) {
    const field = statusFieldOf(record);
    const observation = dnsCheck.get(record.key);
    if (field && observation) domain[field] = observation.status === 'valid' ? 'verified' : 'pending';
  }
}

/**
 * DMARC is optional: without a valid record, its status fails as soon as the other records are settled, but the domain
 * does not.
 */
function settleDmarc(domain: Domain, dnsCheck: DnsCheck): void {
  const dmarc = dnsCheck.get('dmarc');
  if (dmarc && dmarc.status !== 'valid') domain.dmarcStatus = 'failed';
}

/** Another organization may have verified the name first; then this domain fails. */
async function claimAndVerify({ transaction, events, now }: DnsCheckContext, domain: Domain): Promise<void> {
  const claim = await transaction.db
    .selectNoFrom(sql<boolean>`claim_domain(${domain.domainName}, ${domain.organizationId})`.as('claimed'))
    .executeTakeFirst();
  domain.nextCheckAt = null;
  if (!claim?.claimed) {
    domain.verificationStatus = 'failed';
    domain.statusReason = NAME_TAKEN;
    return;
  }
  domain.verificationStatus = 'verified';
  domain.verifiedAt = now;
  domain.statusReason = null;
  domain.failedChecks = 0;
  await announceVerified(transaction, events, domain, now);
}

const NAME_TAKEN =
  'Every required record is published, but another organization has verified this name. It must delete its domain first.';

async function announceVerified(
  transaction: Transaction,
  events: EventService,
  domain: Domain,
  now: Date,
): Promise<void> {
  const { organizationId } = domain;
  const production = await transaction.db
    .selectFrom('environments')
    .select('id')
    .where('org_id', '=', organizationId)
    .where('slug', '=', DEFAULT_ENVIRONMENT_SLUG)
    .executeTakeFirstOrThrow(() => new Error('The organization has no production environment'));
  await events.record(transaction, {
    organizationId,
    environmentId: production.id,
    inboxId: null,
    type: 'domain.verified',
    data: {
      domain_id: domain.id,
      domain_name: domain.domainName,
      verification_status: 'verified',
      spf_status: domain.spfStatus,
      dkim_status: domain.dkimStatus,
      dmarc_status: domain.dmarcStatus,
      verified_at: now.toISOString(),
    },
  });
}

function recheckVerified(
  { countMissedChecks }: DnsCheckContext,
  domain: Domain,
  records: DomainRecord[],
  dnsCheck: DnsCheck,
): void {
  const failing = records.filter(({ required, key }) => {
    const observation = dnsCheck.get(key);
    return required && observation && observation.status !== 'valid';
  });
  for (const record of records) {
    const field = statusFieldOf(record);
    if (field && dnsCheck.get(record.key)?.status === 'valid') domain[field] = 'verified';
  }
  settleDmarc(domain, dnsCheck);
  if (failing.length === 0) {
    const answered = records.every(({ required, key }) => !required || dnsCheck.get(key));
    if (answered) domain.failedChecks = 0;
    domain.statusReason = answered ? null : describeMissing(domain, records, dnsCheck);
    return;
  }
  if (countMissedChecks) domain.failedChecks += 1;
  domain.statusReason = describeMissing(domain, records, dnsCheck);
  if (domain.failedChecks > MAX_MISSED_CHECKS) failVerified(domain, failing);
}

function failVerified(domain: Domain, missed: DomainRecord[]): void {
  domain.verificationStatus = 'failed';
  domain.nextCheckAt = null;
  for (const record of missed) {
    const field = statusFieldOf(record);
    if (field) domain[field] = 'failed';
  }
}

/** Fails the domain and every status that is not verified when a series of checks ends without success. */
export function failPending(domain: Domain, reason: string): void {
  const fail = (status: DomainStatus): DomainStatus => (status === 'verified' ? status : 'failed');
  domain.verificationStatus = 'failed';
  domain.spfStatus = fail(domain.spfStatus);
  domain.dkimStatus = fail(domain.dkimStatus);
  domain.dmarcStatus = fail(domain.dmarcStatus);
  domain.statusReason = reason;
}

/**
 * For example `Required records missing: spf. Invalid: dkim. No DNS answer for: ownership.` Returns the current reason if
 * every required record is valid.
 */
function describeMissing(domain: Domain, records: DomainRecord[], dnsCheck: DnsCheck): string | null {
  const required = records.filter((record) => record.required);
  const purposesOf = (matches: (record: DomainRecord) => boolean) =>
    required
      .filter(matches)
      .map(({ purpose }) => purpose)
      .join(', ');
  const parts = [
    ['Required records missing', purposesOf(({ key }) => dnsCheck.get(key)?.status === 'missing')],
    ['Invalid', purposesOf(({ key }) => dnsCheck.get(key)?.status === 'invalid')],
    ['No DNS answer for', purposesOf(({ key }) => !dnsCheck.get(key))],
  ].flatMap(([what, names]) => (names ? [`${what}: ${names}.`] : []));
  return parts.length > 0 ? parts.join(' ') : domain.statusReason;
}
