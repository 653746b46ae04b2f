import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import type { DnsLookup } from '../../platform/dns.ts';
import {
  nextCheckDelayMs,
  UNANSWERED_VERIFICATION_WINDOW_MS,
  VERIFICATION_WINDOW_MS,
} from '../../workflows/domains/verify-domain.contract.ts';
import type { EventService } from '../events/event.service.ts';
import { applyDnsCheck, type DomainWithKeys, failPending } from './apply-dns-check.ts';
import { DkimKeyEntity } from './dkim-key.entity.ts';
import { checkRecords, type DnsCheck } from './dns-check.ts';
import { type Domain, DomainEntity } from './domain.entity.ts';
import { buildDomainRecords, type DomainRecordSettings } from './domain-records.ts';

/** A look that saw too little, and when the next is due. */
export interface PendingRecords {
  nextCheckInMs: number;
  /** What is missing, for the Temporal UI. */
  detail: string;
}

/** What the lifecycles of domains ask for. Every step may be repeated. */
export interface VerificationService {
  /**
   * Looks at the records and folds what is seen into the domain. Before its time a look is put off.
   *
   * @param options.now a person asked: look whatever the time.
   * @returns how the episode ended, or when to look again.
   */
  check(domainId: string, episode: number, options: { now: boolean }): Promise<string | PendingRecords>;
  /** An operator ended the run: the episode is over, and the domain says so. */
  stop(domainId: string, episode: number): Promise<void>;
  /**
   * Looks at every verified domain that was not looked at for most of a day. Retired keys are forgotten after a week.
   *
   * @param progress called between domains.
   * @returns counts.
   */
  recheckVerified(progress: () => void): Promise<Record<string, number>>;
}

export interface VerificationServiceOptions {
  database: Database;
  events: EventService;
  dns: DnsLookup;
  settings: DomainRecordSettings;
}

/** A timer may fire a little early by another clock. */
const MAX_CLOCK_SKEW_MS = 1_000;
const RECHECK_AFTER = '20 hours';
const RECHECK_BATCH_SIZE = 100;
const MAX_CONCURRENT_RECHECKS = 10;
/** Mail is retried for five days at most; then nobody verifies a signature of before any more. */
const RETIRED_KEY_RETENTION = '7 days';

export function createVerificationService(options: VerificationServiceOptions): VerificationService {
  const { database } = options;
  return {
    check: (domainId, episode, { now }) => check(options, { domainId, episode, now }),

    stop: (domainId, episode) =>
      database.systemTransaction(async ({ em }) => {
        const locked = await lockDomain(em, domainId);
        if (!locked || locked.domain.episode !== episode || !isVerificationPending(locked)) return;
        endEpisode(locked, 'The verification was stopped by an operator; ask for it again.');
      }),

    async recheckVerified(progress) {
      const keysDeleted = await deleteRetiredKeys(database);
      let rechecked = 0;
      for (;;) {
        const ids = await claimDueDomains(database);
        const queue = ids.values();
        const recheckQueued = async () => {
          for (const id of queue) {
            await recheck(options, id);
            rechecked += 1;
            progress();
          }
        };
        await Promise.all(Array.from({ length: MAX_CONCURRENT_RECHECKS }, recheckQueued));
        if (ids.length < RECHECK_BATCH_SIZE) return { rechecked, keysForgotten: keysDeleted };
      }
    },
  };
}

async function check(
  options: VerificationServiceOptions,
  { domainId, episode, now: asked }: { domainId: string; episode: number; now: boolean },
): Promise<string | PendingRecords> {
  const { database } = options;
  const before = await database.autocommit((em) => readDomain(em, domainId));
  const ended = findEpisodeResult(before, episode);
  if (ended !== null || !before) return ended ?? 'deleted';
  const dueInMs = (before.domain.nextCheckAt?.getTime() ?? 0) - Date.now();
  if (!asked && dueInMs > MAX_CLOCK_SKEW_MS)
    return { nextCheckInMs: dueInMs, detail: 'Before the first look.' };
  const seen = await checkDns(options, before);
  return database.systemTransaction(async (transaction) => {
    const locked = await lockDomain(transaction.em, domainId);
    const endedMeanwhile = findEpisodeResult(locked, episode);
    if (endedMeanwhile !== null || !locked) return endedMeanwhile ?? 'deleted';
    const now = new Date();
    await applyDnsCheck({ ...options, transaction, now, countMissedChecks: false }, locked, seen);
    const records = buildDomainRecords(locked.domain, locked.keys, options.settings);
    const answered = records.every(({ required, key }) => !required || seen.get(key));
    return concludeCheck(locked, { answered, now });
  });
}

/** Null: the episode goes on. */
function findEpisodeResult(found: DomainWithKeys | null, episode: number): string | null {
  if (!found) return 'deleted';
  if (found.domain.episode !== episode) return 'superseded';
  return isVerificationPending(found) ? null : found.domain.verificationStatus;
}

/** Whether there is still something a look may find: the domain itself, or the record of a new key. */
export function isVerificationPending({ domain, keys }: DomainWithKeys): boolean {
  return (
    domain.nextCheckAt !== null &&
    (domain.verificationStatus === 'pending' ||
      (domain.verificationStatus === 'verified' && keys.some(({ state }) => state === 'pending')))
  );
}

function concludeCheck(
  locked: DomainWithKeys,
  { answered, now }: { answered: boolean; now: Date },
): string | PendingRecords {
  const { domain } = locked;
  if (!isVerificationPending(locked)) {
    domain.nextCheckAt = null;
    return domain.verificationStatus;
  }
  const elapsedMs = now.getTime() - domain.episodeStartedAt.getTime();
  if (elapsedMs >= (answered ? VERIFICATION_WINDOW_MS : UNANSWERED_VERIFICATION_WINDOW_MS)) {
    endEpisode(locked, `Not verified within the time. ${domain.statusReason ?? ''}`.trim());
    return domain.verificationStatus;
  }
  const nextCheckInMs = nextCheckDelayMs(elapsedMs);
  domain.nextCheckAt = new Date(now.getTime() + nextCheckInMs);
  return { nextCheckInMs, detail: domain.statusReason ?? 'The record of the new DKIM key is missing.' };
}

/** A verified domain whose new key was not seen stays verified: the old key signs on, and re-checks look for the new. */
function endEpisode({ domain }: DomainWithKeys, reason: string): void {
  if (domain.verificationStatus === 'pending') failPending(domain, reason);
  domain.nextCheckAt = null;
}

async function recheck(options: VerificationServiceOptions, domainId: string): Promise<void> {
  const { database } = options;
  const before = await database.autocommit((em) => readDomain(em, domainId));
  if (before?.domain.verificationStatus !== 'verified') return;
  const seen = await checkDns(options, before);
  await database.systemTransaction(async (transaction) => {
    const locked = await lockDomain(transaction.em, domainId);
    if (locked?.domain.verificationStatus !== 'verified') return;
    await applyDnsCheck({ ...options, transaction, now: new Date(), countMissedChecks: true }, locked, seen);
  });
}

function checkDns(
  { dns, settings }: VerificationServiceOptions,
  { domain, keys }: DomainWithKeys,
): Promise<DnsCheck> {
  return checkRecords(dns, buildDomainRecords(domain, keys, settings));
}

async function readDomain(em: EntityManager, domainId: string): Promise<DomainWithKeys | null> {
  const domain = await em.findOne(DomainEntity, { id: domainId });
  return domain && loadKeys(em, domain);
}

async function lockDomain(em: EntityManager, domainId: string): Promise<DomainWithKeys | null> {
  const domain = await em.findOne(DomainEntity, { id: domainId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
  return domain && loadKeys(em, domain);
}

/** Keys in the order they were made. */
export async function loadKeys(em: EntityManager, domain: Domain): Promise<DomainWithKeys> {
  const keys = await em.find(
    DkimKeyEntity,
    { domainId: domain.id },
    { orderBy: { createdAt: 'asc', selector: 'asc' } },
  );
  return { domain, keys };
}

/** Marked before they are looked at: a domain that breaks its look does not keep the others from theirs. */
async function claimDueDomains(database: Database): Promise<string[]> {
  const rows = await database.autocommit((em) =>
    em.execute<{ id: string }[]>(
      `update domains set last_checked_at = now() where id in (
         select id from domains where verification_status = 'verified'
           and last_checked_at < now() - interval '${RECHECK_AFTER}'
         order by last_checked_at limit ? for update skip locked)
       returning id`,
      [RECHECK_BATCH_SIZE],
    ),
  );
  return rows.map(({ id }) => id);
}

async function deleteRetiredKeys(database: Database): Promise<number> {
  const rows = await database.autocommit((em) =>
    em.execute<unknown[]>(
      `delete from dkim_keys where state = 'retiring' and retired_at < now() - interval '${RETIRED_KEY_RETENTION}'
       returning 1`,
    ),
  );
  return rows.length;
}
