import { sql } from 'kysely';
import { anyLocked } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { DnsLookup } from '../../platform/dns.ts';
import {
  nextCheckDelayMs,
  UNANSWERED_VERIFICATION_WINDOW_MS,
  VERIFICATION_WINDOW_MS,
} from '../../workflows/domains/verify-domain.contract.ts';
import type { EventService } from '../events/event.service.ts';
import { applyDnsCheck, failPending } from './apply-dns-check.ts';
import { checkRecords, type DnsCheck } from './dns-check.ts';
import { DomainEntity } from './domain.entity.ts';
import { buildDomainRecords, type DomainRecordSettings } from './domain-records.ts';
import { type DomainWithKeys, loadKeys, saveDomain } from './domain-with-keys.ts';
import { checkedStateOf, recordDnsChanges } from './record-dns-changes.ts';

/** Some records are still missing or invalid; another check is due. */
export interface PendingRecords {
  nextCheckInMs: number;
  /** Which records are missing, for the Temporal UI. */
  detail: string;
}

export interface VerificationServiceOptions {
  database: Database;
  events: EventService;
  dns: DnsLookup;
  settings: DomainRecordSettings;
}

/** Another host's clock may be slightly ahead when its timer fires. */
const MAX_CLOCK_SKEW_MS = 1_000;
const RECHECK_AFTER = '20 hours';
const RECHECK_BATCH_SIZE = 100;
const MAX_CONCURRENT_RECHECKS = 10;
/** Messages are retried for at most five days; after that no receiver verifies an old signature. */
const RETIRED_KEY_RETENTION = '7 days';

export type VerificationService = ReturnType<typeof createVerificationService>;

/** The steps of the domain workflows. Each may be repeated. */
export function createVerificationService(options: VerificationServiceOptions) {
  const { database } = options;
  return {
    /**
     * Checks the records and applies the result to the domain. A check that is not due yet is postponed.
     *
     * @param options.now check now even if the schedule says later.
     * @returns how the series of checks ended, or when to check again.
     */
    check: (
      domainId: string,
      generation: number,
      { now }: { now: boolean },
    ): Promise<string | PendingRecords> => check(options, { domainId, generation, now }),

    /** Ends the series of checks after an operator ended its run. `statusReason` of the domain then says so. */
    stop: (domainId: string, generation: number): Promise<void> =>
      database.systemTransaction(async ({ db }) => {
        const locked = await lockDomain(db, domainId);
        if (!locked || locked.domain.generation !== generation || !isVerificationRunning(locked)) return;
        const state = checkedStateOf(locked);
        endVerification(locked, 'An operator stopped the verification. Start it again with verify.');
        await recordDnsChanges(db, state, locked);
        await saveDomain(db, locked.domain);
      }),

    /**
     * Checks every verified domain whose last check was at least 20 hours ago. Also deletes keys a week after their
     * retirement.
     *
     * @param onProgress called after each domain.
     * @returns counts.
     */
    async recheckVerified(onProgress: () => void): Promise<Record<string, number>> {
      const keysDeleted = await deleteRetiredKeys(database.db);
      let rechecked = 0;
      for (;;) {
        const ids = await claimDueDomains(database.db);
        const queue = ids.values();
        const runRecheckWorker = async () => {
          for (const id of queue) {
            await recheck(options, id);
            rechecked += 1;
            onProgress();
          }
        };
        await Promise.all(Array.from({ length: MAX_CONCURRENT_RECHECKS }, runRecheckWorker));
        if (ids.length < RECHECK_BATCH_SIZE) return { rechecked, keysDeleted };
      }
    },
  };
}

async function check(
  options: VerificationServiceOptions,
  { domainId, generation, now: checkNow }: { domainId: string; generation: number; now: boolean },
): Promise<string | PendingRecords> {
  const { database } = options;
  const before = await readDomain(database.db, domainId);
  const ended = findVerificationResult(before, generation);
  if (ended !== null || !before) return ended ?? 'deleted';
  const dueInMs = (before.domain.nextCheckAt?.getTime() ?? 0) - Date.now();
  if (!checkNow && dueInMs > MAX_CLOCK_SKEW_MS)
    return { nextCheckInMs: dueInMs, detail: 'Waiting for the first check.' };
  const dnsCheck = await checkDns(options, before);
  return database.systemTransaction(async (transaction) => {
    const locked = await lockDomain(transaction.db, domainId);
    const endedMeanwhile = findVerificationResult(locked, generation);
    if (endedMeanwhile !== null || !locked) return endedMeanwhile ?? 'deleted';
    const now = new Date();
    const state = checkedStateOf(locked);
    await applyDnsCheck({ ...options, transaction, now, countMissedChecks: false }, locked, dnsCheck);
    const records = buildDomainRecords(locked.domain, locked.keys, options.settings);
    const answered = records.every(({ required, key }) => !required || dnsCheck.get(key));
    const result = concludeCheck(locked, { answered, now });
    await recordDnsChanges(transaction.db, state, locked);
    await saveDomain(transaction.db, locked.domain);
    return result;
  });
}

/** Returns null while the series of checks continues. */
function findVerificationResult(current: DomainWithKeys | null, generation: number): string | null {
  if (!current) return 'deleted';
  if (current.domain.generation !== generation) return 'superseded';
  return isVerificationRunning(current) ? null : current.domain.verificationStatus;
}

/** Whether the series continues: a check is scheduled and can still change something. */
function isVerificationRunning(found: DomainWithKeys): boolean {
  return found.domain.nextCheckAt !== null && awaitsRecords(found);
}

/** Whether another check can change anything: for the domain itself or for the record of a new key. */
export function awaitsRecords({ domain, keys }: DomainWithKeys): boolean {
  return (
    domain.verificationStatus === 'pending' ||
    (domain.verificationStatus === 'verified' && keys.some(({ state }) => state === 'pending'))
  );
}

function concludeCheck(
  locked: DomainWithKeys,
  { answered, now }: { answered: boolean; now: Date },
): string | PendingRecords {
  const { domain } = locked;
  if (!isVerificationRunning(locked)) {
    domain.nextCheckAt = null;
    return domain.verificationStatus;
  }
  const elapsedMs = now.getTime() - domain.generationStartedAt.getTime();
  if (elapsedMs >= (answered ? VERIFICATION_WINDOW_MS : UNANSWERED_VERIFICATION_WINDOW_MS)) {
    endVerification(locked, `Not verified in time. ${domain.statusReason ?? ''}`.trim());
    return domain.verificationStatus;
  }
  const nextCheckInMs = nextCheckDelayMs(elapsedMs);
  domain.nextCheckAt = new Date(now.getTime() + nextCheckInMs);
  return { nextCheckInMs, detail: domain.statusReason ?? 'The record of the new DKIM key is missing.' };
}

/** A verified domain stays verified if its new key was not found: the old key keeps signing, and rechecks look for the new one. */
function endVerification({ domain }: DomainWithKeys, reason: string): void {
  if (domain.verificationStatus === 'pending') failPending(domain, reason);
  domain.nextCheckAt = null;
}

async function recheck(options: VerificationServiceOptions, domainId: string): Promise<void> {
  const { database } = options;
  const before = await readDomain(database.db, domainId);
  if (before?.domain.verificationStatus !== 'verified') return;
  const dnsCheck = await checkDns(options, before);
  await database.systemTransaction(async (transaction) => {
    const locked = await lockDomain(transaction.db, domainId);
    if (locked?.domain.verificationStatus !== 'verified') return;
    const state = checkedStateOf(locked);
    await applyDnsCheck(
      { ...options, transaction, now: new Date(), countMissedChecks: true },
      locked,
      dnsCheck,
    );
    await recordDnsChanges(transaction.db, state, locked);
    await saveDomain(transaction.db, locked.domain);
  });
}

function checkDns(
  { dns, settings }: VerificationServiceOptions,
  { domain, keys }: DomainWithKeys,
): Promise<DnsCheck> {
  return checkRecords(dns, buildDomainRecords(domain, keys, settings));
}

const selectDomain = (db: Db, domainId: string) =>
  db.selectFrom('domains').select(columnsOf(DomainEntity)).where('id', '=', domainId);

async function readDomain(db: Db, domainId: string): Promise<DomainWithKeys | null> {
  const domain = await selectDomain(db, domainId).executeTakeFirst();
  return domain ? loadKeys(db, domain) : null;
}

async function lockDomain(db: Db, domainId: string): Promise<DomainWithKeys | null> {
  const domain = await selectDomain(db, domainId).forUpdate().executeTakeFirst();
  return domain ? loadKeys(db, domain) : null;
}

/** Marks domains before they are checked, so that a domain whose check fails does not block the others. */
async function claimDueDomains(db: Db): Promise<string[]> {
  const due = db
    .selectFrom('domains')
    .select('id')
    .where('verification_status', '=', 'verified')
    .where('last_checked_at', '<', sql<Date>`now() - ${RECHECK_AFTER}::interval`)
    .orderBy('last_checked_at')
    .limit(RECHECK_BATCH_SIZE)
    .forUpdate()
    .skipLocked();
  const rows = await db
    .updateTable('domains')
    .set({ last_checked_at: sql`now()` })
    .where('id', '=', anyLocked(due))
    .returning('id')
    .execute();
  return rows.map(({ id }) => id);
}

async function deleteRetiredKeys(db: Db): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('dkim_keys')
    .where('state', '=', 'retiring')
    .where('retired_at', '<', sql<Date>`now() - ${RETIRED_KEY_RETENTION}::interval`)
    .executeTakeFirstOrThrow(() => new Error('PostgreSQL did not answer a deletion'));
  return Number(numDeletedRows);
}
