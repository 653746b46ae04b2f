import { sql } from 'kysely';
import { createFairShare, type Holder, networkHolder } from '../../platform/concurrency/fair-share.ts';
import { sha256 } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { networkOf } from '../../platform/network.ts';
import { claimDeviceAttempt, releaseDeviceAttempt } from '../sessions/known-devices.ts';

/** Failures without a delay. Each further one delays the next attempt: 1 s, 2 s, 4 s, … */
const FREE_ATTEMPTS = { account: 5, network: 50 };
const MAX_DELAY_SECONDS = 900;
/** Attempts older than this are forgotten. */
const WINDOW_MINUTES = 60;

/** Whose attempt it is. */
export interface Attempt {
  /**
   * What the attempt may be guessing: an address as entered, in lower case, whether or not an account has it; or a prefix
   * with an id. Each has a separate counter.
   */
  account: string;
  /**
   * Null: the attempt does not count for the network, because the caller is signed in, and strangers in their network must
   * not stop them.
   */
  ip: string | null;
  /** In a known device of the person, the attempt counts for the device alone, as long as it has failures left. */
  device?: { person: { userId: string } | { email: string }; tokens: readonly string[] } | undefined;
}

/** Attempts that are counted at the same time. Those of a network wait for each other's lock, each with a connection. */
const MAX_CONCURRENT_COUNTS = 4;

export type SignInThrottle = ReturnType<typeof createSignInThrottle>;

/**
 * Slows down guessing of passwords, codes and tokens, by account and by client network (an IPv4 address or an IPv6 /64).
 * The state is in PostgreSQL, so it holds across processes.
 */
export function createSignInThrottle({ database }: { database: Database }) {
  const counts = createFairShare({ name: 'attempts that are counted', capacity: MAX_CONCURRENT_COUNTS });

  async function countInShare(client: Attempt): Promise<CountedAttempt> {
    const { account, ip } = client;
    const holder: Holder = ip === null ? { kind: 'credential', id: account } : networkHolder(ip);
    const release = await counts.acquire({ holders: [{ ...holder, max: 1 }] });
    return database.peopleTransaction(({ db }) => count(db, client)).finally(release);
  }

  return {
    /**
     * Runs an attempt. It counts before it runs, so concurrent guesses count too. A success resets the account, and does not
     * count for the network, which many people may share. Only a 401 is a failure: an attempt that ends with any other error
     * was not a guess, and does not count.
     *
     * @throws AppError `rate_limited` if a previous failure blocks it; what `attempt` throws.
     */
    async run<T>(client: Attempt, attempt: () => Promise<T>): Promise<T> {
      const counted = await countInShare(client);
      if (counted.waitSeconds > 0) throw tooManyAttempts(counted.waitSeconds);
      try {
        const result = await attempt();
        await database.peopleTransaction(({ db }) => counted.succeed(db));
        return result;
      } catch (error) {
        const isFailure = error instanceof AppError && error.status === 401;
        if (!isFailure)
          await database.peopleTransaction(({ db }) => counted.takeBack(db)).catch(() => undefined);
        throw error;
      }
    },
  };
}

/** Ends the delay of an account, in the caller's transaction. */
export async function forgetFailures(db: Db, account: string): Promise<void> {
  await db.deleteFrom('sign_in_attempts').where('key_hash', '=', accountKey(account)).execute();
}

const accountKey = (account: string): Buffer => sha256(`account:${account}`);

interface CountedAttempt {
  /** If it is blocked; then nothing was counted. */
  waitSeconds: number;
  succeed(db: Db): Promise<void>;
  takeBack(db: Db): Promise<void>;
}

async function count(db: Db, { account, ip, device }: Attempt): Promise<CountedAttempt> {
  const tokenHash = device && (await claimDeviceAttempt(db, device.person, device.tokens));
  if (tokenHash) {
    const release = (inner: Db) => releaseDeviceAttempt(inner, tokenHash);
    // The failures of others stay: a sign-in of the person must not give strangers new attempts.
    return { waitSeconds: 0, succeed: release, takeBack: release };
  }
  const byAccount = { hash: accountKey(account), free: FREE_ATTEMPTS.account };
  const byNetwork =
    ip === null ? [] : [{ hash: sha256(`network:${networkOf(ip)}`), free: FREE_ATTEMPTS.network }];
  const { waitSeconds, takeBack } = await countKeys(db, [byAccount, ...byNetwork]);
  return {
    waitSeconds,
    async succeed(inner) {
      await forgetFailures(inner, account);
      for (const { hash } of byNetwork) await takeBack(inner, hash);
    },
    async takeBack(inner) {
      await takeBack(inner, byAccount.hash);
      for (const { hash } of byNetwork) await takeBack(inner, hash);
    },
  };
}

interface AttemptKey {
  hash: Buffer;
  free: number;
}

interface CountedKeys {
  /** The seconds to wait if one of the keys is blocked; then none is counted. */
  waitSeconds: number;
  takeBack(db: Db, hash: Buffer): Promise<void>;
}

/** Counts one attempt for each key. */
async function countKeys(db: Db, keys: AttemptKey[]): Promise<CountedKeys> {
  let waitSeconds = 0;
  const attemptsOf = new Map<AttemptKey, number>();
  for (const key of keys) {
    // Locks the row, and returns its former values. Reads the clock, because `now()` is older than the lock, and subtracts a
    // millisecond, because stored times are rounded.
    const row = await db
      .insertInto('sign_in_attempts')
      .values({
        key_hash: key.hash,
        failures: 0,
        last_attempt_at: sql<Date>`now()`,
        blocked_until: sql<Date>`now() - interval '1 second'`,
      })
      .onConflict((conflict) =>
        conflict.column('key_hash').doUpdateSet((eb) => ({ failures: eb.ref('sign_in_attempts.failures') })),
      )
      .returning([
        'failures',
        sql<boolean>`last_attempt_at < now() - make_interval(mins => ${WINDOW_MINUTES})`.as('isOld'),
        sql<number>`greatest(0, ceil(extract(epoch from blocked_until - clock_timestamp())))::int`.as(
          'waitSeconds',
        ),
      ])
      .executeTakeFirst();
    attemptsOf.set(key, row && !row.isOld ? row.failures + 1 : 1);
    waitSeconds = Math.max(waitSeconds, row?.waitSeconds ?? 0);
  }
  if (waitSeconds > 0) return { waitSeconds, takeBack: async () => undefined };
  for (const [{ hash, free }, attempts] of attemptsOf)
    await db
      .updateTable('sign_in_attempts')
      .set({
        failures: attempts,
        last_attempt_at: sql<Date>`now()`,
        blocked_until: sql<Date>`clock_timestamp() + ${delaySeconds(attempts - free)} * interval '1 second'
          - interval '1 millisecond'`,
      })
      .where('key_hash', '=', hash)
      .execute();
  const countOf = new Map([...attemptsOf].map(([{ hash }, attempts]) => [hash, attempts]));
  return {
    waitSeconds: 0,
    async takeBack(inner, hash) {
      // The delay ends only if no other attempt has counted since, because it would then be the delay of that attempt.
      const ownCount = countOf.get(hash) ?? 0;
      await inner
        .updateTable('sign_in_attempts')
        .set({
          failures: sql<number>`greatest(failures - 1, 0)`,
          blocked_until: sql<Date>`case when failures = ${ownCount} then now() else blocked_until end`,
        })
        .where('key_hash', '=', hash)
        .execute();
    },
  };
}

/** The delay after the given number of attempts beyond those without a delay. */
function delaySeconds(excess: number): number {
  return excess <= 0 ? 0 : Math.min(2 ** Math.min(excess - 1, 20), MAX_DELAY_SECONDS);
}

function tooManyAttempts(waitSeconds: number): AppError {
  return new AppError('rate_limited', {
    detail: 'Too many failed attempts for this account or from this network.',
    fix: `Wait ${waitSeconds} s (see Retry-After), or reset the password.`,
    headers: { 'retry-after': String(waitSeconds) },
  });
}
