import type { Transaction } from '../../platform/database/database.ts';
import type { EventService } from '../events/event.service.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import type { DkimKey } from './dkim-key.entity.ts';
import type { DnsCheck } from './dns-check.ts';
import type { Domain, DomainStatus } from './domain.entity.ts';
import {
  buildDomainRecords,
  type DomainRecord,
  type DomainRecordSettings,
  dkimRecordKey,
} from './domain-records.ts';

/** A domain, its row locked, with its keys. */
export interface DomainWithKeys {
  domain: Domain;
  keys: DkimKey[];
}

/** Re-checks in a row that may miss a required record before a verified domain has failed. */
export const MAX_MISSED_CHECKS = 2;

export interface DnsCheckContext {
  transaction: Transaction;
  events: EventService;
  settings: DomainRecordSettings;
  now: Date;
  /** A miss counts towards the end of a verified domain: the daily re-check's only, so that nobody hastens it. */
  countMissedChecks: boolean;
}

/**
 * Folds what DNS said into the domain. Afterwards `observed` says what is published, a waiting DKIM key whose record
 * was seen signs, and the statuses follow: a pending domain is verified by one look that saw every required record, a
 * verified one fails after some re-checks in a row that missed one. What DNS did not answer changes nothing.
 */
export async function applyDnsCheck(
  context: DnsCheckContext,
  locked: DomainWithKeys,
  look: DnsCheck,
): Promise<void> {
  const { domain, keys } = locked;
  domain.lastCheckedAt = context.now;
  activatePublishedKey(keys, look, context.now);
  const records = buildDomainRecords(domain, keys, context.settings);
  domain.observed = Object.fromEntries(
    records.flatMap(({ key }) => {
      const observation = look.get(key) ?? domain.observed[key];
      return observation ? [[key, observation]] : [];
    }),
  );
  if (domain.verificationStatus === 'verified') return recheckVerified(context, domain, records, look);
  updateRecordStatuses(domain, records, look);
  const required = records.filter((record) => record.required);
  if (required.every(({ key }) => look.get(key)?.status === 'valid')) await claimAndVerify(context, domain);
  else domain.statusReason = describeMissing(domain, records, look);
}

function activatePublishedKey(keys: DkimKey[], look: DnsCheck, now: Date): void {
  const waiting = keys.find(({ state }) => state === 'pending');
  if (!waiting || look.get(dkimRecordKey(waiting))?.status !== 'valid') return;
  for (const key of keys) {
    if (key.state !== 'active') continue;
    key.state = 'retiring';
    key.retiredAt = now;
  }
  waiting.state = 'active';
}

/** The purposes that have a status of their own; a domain's DKIM status is that of the key that signs. */
const STATUS_FIELDS = { spf: 'spfStatus', dkim: 'dkimStatus', dmarc: 'dmarcStatus' } as const;

function statusFieldOf({ purpose, required }: DomainRecord) {
  if (purpose === 'ownership' || purpose === 'mx' || (purpose === 'dkim' && !required)) return null;
  return STATUS_FIELDS[purpose];
}

function updateRecordStatuses(domain: Domain, records: DomainRecord[], look: DnsCheck): void {
  for (const record of records) {
    const field = statusFieldOf(record);
    const observation = look.get(record.key);
    if (field && observation) domain[field] = observation.status === 'valid' ? 'verified' : 'pending';
  }
}

/** The name may be another's by now: who was first has it, and this claim ends with the reason. */
async function claimAndVerify({ transaction, events, now }: DnsCheckContext, domain: Domain): Promise<void> {
  const [claim] = await transaction.em.execute<{ claimed: boolean }[]>(
    'select claim_domain(?, ?) as claimed',
    [domain.domainName, domain.organizationId],
  );
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
  'Every required record is there, but another organization of this service has this name verified; it has to delete its domain first.';

async function announceVerified(
  transaction: Transaction,
  events: EventService,
  domain: Domain,
  now: Date,
): Promise<void> {
  const { organizationId } = domain;
  const production = await transaction.em.findOneOrFail(EnvironmentEntity, {
    organizationId,
    kind: 'production',
    name: 'production',
  });
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
  look: DnsCheck,
): void {
  const missed = records.filter(({ required, key }) => {
    const observation = look.get(key);
    return required && observation && observation.status !== 'valid';
  });
  for (const record of records) {
    const field = statusFieldOf(record);
    if (field && look.get(record.key)?.status === 'valid') domain[field] = 'verified';
  }
  const dmarc = look.get('dmarc');
  if (dmarc && dmarc.status !== 'valid' && domain.dmarcStatus === 'verified') domain.dmarcStatus = 'failed';
  if (missed.length === 0) {
    const answered = records.every(({ required, key }) => !required || look.get(key));
    if (answered) domain.failedChecks = 0;
    domain.statusReason = answered ? null : describeMissing(domain, records, look);
    return;
  }
  if (countMissedChecks) domain.failedChecks += 1;
  domain.statusReason = describeMissing(domain, records, look);
  if (domain.failedChecks > MAX_MISSED_CHECKS) failVerified(domain, missed);
}

function failVerified(domain: Domain, missed: DomainRecord[]): void {
  domain.verificationStatus = 'failed';
  domain.nextCheckAt = null;
  for (const record of missed) {
    const field = statusFieldOf(record);
    if (field) domain[field] = 'failed';
  }
}

/** The series of looks is over without success: what is not verified by now has failed. */
export function failPending(domain: Domain, reason: string): void {
  const fail = (status: DomainStatus): DomainStatus => (status === 'verified' ? status : 'failed');
  domain.verificationStatus = 'failed';
  domain.spfStatus = fail(domain.spfStatus);
  domain.dkimStatus = fail(domain.dkimStatus);
  domain.dmarcStatus = fail(domain.dmarcStatus);
  domain.statusReason = reason;
}

/** `Required records missing: spf. Invalid: dkim. DNS did not answer for: ownership.` Null: nothing is. */
export function describeMissing(domain: Domain, records: DomainRecord[], look: DnsCheck): string | null {
  const required = records.filter((record) => record.required);
  const named = (which: (record: DomainRecord) => boolean) =>
    required
      .filter(which)
      .map(({ purpose }) => purpose)
      .join(', ');
  const parts = [
    ['Required records missing', named(({ key }) => look.get(key)?.status === 'missing')],
    ['Invalid', named(({ key }) => look.get(key)?.status === 'invalid')],
    ['DNS did not answer for', named(({ key }) => !look.get(key))],
  ].flatMap(([what, names]) => (names ? [`${what}: ${names}.`] : []));
  return parts.length > 0 ? parts.join(' ') : domain.statusReason;
}
