import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import type { DnsLookup } from '../../platform/dns.ts';
import {
  pauseBeforeNextLookMs,
  VERIFICATION_LIMIT_MS,
  VERIFICATION_WINDOW_MS,
} from '../../workflows/domains/verify-domain.contract.ts';
import type { EventService } from '../events/event.service.ts';
import { DkimKeyEntity } from './dkim-key.entity.ts';
import { type Domain, DomainEntity } from './domain.entity.ts';
import { type DomainLook, lookAtRecords } from './domain-look.ts';
import { type DomainRecordSettings, recordsOf } from './domain-records.ts';
import { failPending, type LockedDomain, recordLook } from './record-look.ts';

/** A look that saw too little, and when the next is due. */
export interface StillMissing {
  againInMs: number;
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
  look(domainId: string, episode: number, options: { now: boolean }): Promise<string | StillMissing>;
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
const EARLY_MS = 1_000;
const RECHECK_AFTER = '20 hours';
const RECHECK_BATCH = 100;
const RECHECKS_AT_ONCE = 10;
/** Mail is retried for five days at most; then nobody verifies a signature of before any more. */
const RETIRED_KEYS_KEPT = '7 days';

export function createVerificationService(options: VerificationServiceOptions): VerificationService {
  const { database } = options;
  return {
    look: (domainId, episode, { now }) => look(options, { domainId, episode, now }),

    stop: (domainId, episode) =>
      database.systemTransaction(async ({ em }) => {
        const locked = await lockDomain(em, domainId);
        if (!locked || locked.domain.episode !== episode || !isAwaited(locked)) return;
        endEpisode(locked, 'The verification was stopped by an operator; ask for it again.');
      }),

    async recheckVerified(progress) {
      const forgotten = await forgetRetiredKeys(database);
      let rechecked = 0;
      for (;;) {
        const ids = await takeDue(database);
        const queue = ids.values();
        const lane = async () => {
          for (const id of queue) {
            await recheck(options, id);
            rechecked += 1;
            progress();
          }
        };
        await Promise.all(Array.from({ length: RECHECKS_AT_ONCE }, lane));
        if (ids.length < RECHECK_BATCH) return { rechecked, keysForgotten: forgotten };
      }
    },
  };
}

async function look(
  options: VerificationServiceOptions,
  { domainId, episode, now: asked }: { domainId: string; episode: number; now: boolean },
): Promise<string | StillMissing> {
  const { database } = options;
  const before = await database.autocommit((em) => readDomain(em, domainId));
  const ended = endOf(before, episode);
  if (ended !== null || !before) return ended ?? 'deleted';
  const dueInMs = (before.domain.nextLookAt?.getTime() ?? 0) - Date.now();
  if (!asked && dueInMs > EARLY_MS) return { againInMs: dueInMs, detail: 'Before the first look.' };
  const seen = await lookAt(options, before);
  return database.systemTransaction(async (transaction) => {
    const locked = await lockDomain(transaction.em, domainId);
    const endedMeanwhile = endOf(locked, episode);
    if (endedMeanwhile !== null || !locked) return endedMeanwhile ?? 'deleted';
    const now = new Date();
    await recordLook({ ...options, transaction, now, countsMisses: false }, locked, seen);
    const records = recordsOf(locked.domain, locked.keys, options.settings);
    const answered = records.every(({ required, key }) => !required || seen.get(key));
    return conclude(locked, { answered, now });
  });
}

/** Null: the episode goes on. */
function endOf(found: LockedDomain | null, episode: number): string | null {
  if (!found) return 'deleted';
  if (found.domain.episode !== episode) return 'superseded';
  return isAwaited(found) ? null : found.domain.verificationStatus;
}

/** Whether there is still something a look may find: the domain itself, or the record of a new key. */
export function isAwaited({ domain, keys }: LockedDomain): boolean {
  return (
    domain.nextLookAt !== null &&
    (domain.verificationStatus === 'pending' ||
      (domain.verificationStatus === 'verified' && keys.some(({ state }) => state === 'pending')))
  );
}

function conclude(
  locked: LockedDomain,
  { answered, now }: { answered: boolean; now: Date },
): string | StillMissing {
  const { domain } = locked;
  if (!isAwaited(locked)) {
    domain.nextLookAt = null;
    return domain.verificationStatus;
  }
  const elapsedMs = now.getTime() - domain.episodeStartedAt.getTime();
  if (elapsedMs >= (answered ? VERIFICATION_WINDOW_MS : VERIFICATION_LIMIT_MS)) {
    endEpisode(locked, `Not verified within the time. ${domain.statusReason ?? ''}`.trim());
    return domain.verificationStatus;
  }
  const againInMs = pauseBeforeNextLookMs(elapsedMs);
  domain.nextLookAt = new Date(now.getTime() + againInMs);
  return { againInMs, detail: domain.statusReason ?? 'The record of the new DKIM key is missing.' };
}

/** A verified domain whose new key was not seen stays verified: the old key signs on, and re-checks look for the new. */
function endEpisode({ domain }: LockedDomain, reason: string): void {
  if (domain.verificationStatus === 'pending') failPending(domain, reason);
  domain.nextLookAt = null;
}

async function recheck(options: VerificationServiceOptions, domainId: string): Promise<void> {
  const { database } = options;
  const before = await database.autocommit((em) => readDomain(em, domainId));
  if (before?.domain.verificationStatus !== 'verified') return;
  const seen = await lookAt(options, before);
  await database.systemTransaction(async (transaction) => {
    const locked = await lockDomain(transaction.em, domainId);
    if (locked?.domain.verificationStatus !== 'verified') return;
    await recordLook({ ...options, transaction, now: new Date(), countsMisses: true }, locked, seen);
  });
}

function lookAt(
  { dns, settings }: VerificationServiceOptions,
  { domain, keys }: LockedDomain,
): Promise<DomainLook> {
  return lookAtRecords(dns, recordsOf(domain, keys, settings));
}

async function readDomain(em: EntityManager, domainId: string): Promise<LockedDomain | null> {
  const domain = await em.findOne(DomainEntity, { id: domainId });
  return domain && withKeys(em, domain);
}

async function lockDomain(em: EntityManager, domainId: string): Promise<LockedDomain | null> {
  const domain = await em.findOne(DomainEntity, { id: domainId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
  return domain && withKeys(em, domain);
}

/** Keys in the order they were made. */
export async function withKeys(em: EntityManager, domain: Domain): Promise<LockedDomain> {
  const keys = await em.find(
    DkimKeyEntity,
    { domainId: domain.id },
    { orderBy: { createdAt: 'asc', selector: 'asc' } },
  );
  return { domain, keys };
}

/** Marked before they are looked at: a domain that breaks its look does not keep the others from theirs. */
async function takeDue(database: Database): Promise<string[]> {
  const rows = await database.autocommit((em) =>
    em.execute<{ id: string }[]>(
      `update domains set last_looked_at = now() where id in (
         select id from domains where verification_status = 'verified'
           and last_looked_at < now() - interval '${RECHECK_AFTER}'
         order by last_looked_at limit ? for update skip locked)
       returning id`,
      [RECHECK_BATCH],
    ),
  );
  return rows.map(({ id }) => id);
}

async function forgetRetiredKeys(database: Database): Promise<number> {
  const rows = await database.autocommit((em) =>
    em.execute<unknown[]>(
      `delete from dkim_keys where state = 'retiring' and retired_at < now() - interval '${RETIRED_KEYS_KEPT}'
       returning 1`,
    ),
  );
  return rows.length;
}
