import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { sha256 } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { networkOf } from '../../platform/network.ts';

/** Attempts that cost nothing, after which each one delays the next: 1 s, 2 s, 4 s, … */
const FREE_ATTEMPTS = { account: 5, network: 50 };
const MAX_DELAY_SECONDS = 900;
/** Attempts older than this are forgotten. */
const WINDOW_MINUTES = 60;

/**
 * Slows down guessing of passwords, codes and tokens, by account and by client network (an IPv4 address or an IPv6 /64).
 * The state is in PostgreSQL, so it holds across processes.
 */
export interface SignInThrottle {
  /**
   * Runs an attempt. It counts before it runs, so concurrent guesses count too. A success resets the account, and does not
   * count for the network, which many people may share.
   *
   * @param account the address as it was entered, in lower case, whether or not an account has it.
   * @throws AppError `rate_limited` if a previous failure blocks it; what `attempt` throws.
   */
  run<T>(client: { account: string; ip: string }, attempt: () => Promise<T>): Promise<T>;
}

export function createSignInThrottle({ database }: { database: Database }): SignInThrottle {
  return {
    async run({ account, ip }, attempt) {
      const network = sha256(`network:${networkOf(ip)}`);
      const keys = [
        { hash: accountKey(account), free: FREE_ATTEMPTS.account },
        { hash: network, free: FREE_ATTEMPTS.network },
      ];
      const waitSeconds = await count(database, keys);
      if (waitSeconds > 0) throw tooManyAttempts(waitSeconds);
      const result = await attempt();
      await database.peopleTransaction(async ({ em }) => {
        await forgetFailures(em, account);
        await em.execute(sql`
          update sign_in_attempts set failures = greatest(failures - 1, 0), blocked_until = now()
          where key_hash = ${network}`);
      });
      return result;
    },
  };
}

/** Ends the delay of an account, in the caller's transaction. */
export async function forgetFailures(em: EntityManager, account: string): Promise<void> {
  await em.execute(sql`delete from sign_in_attempts where key_hash = ${accountKey(account)}`);
}

const accountKey = (account: string): Buffer => sha256(`account:${account}`);

interface AttemptKey {
  hash: Buffer;
  free: number;
}

/** Counts one attempt for each key. Returns the seconds to wait if one of them is blocked; then none is counted. */
async function count(database: Database, keys: AttemptKey[]): Promise<number> {
  return database.peopleTransaction(async ({ em }) => {
    let waitSeconds = 0;
    const failures = new Map<AttemptKey, number>();
    for (const key of keys) {
      // Locks the row, and returns it as it was. The clock, because `now()` is older than the lock; minus a millisecond,
      // because stored times are rounded.
      const [row] = await em.execute<{ failures: number; isOld: boolean; waitSeconds: number }[]>(sql`
        insert into sign_in_attempts as a (key_hash, failures, last_attempt_at, blocked_until)
        values (${key.hash}, 0, now(), now() - interval '1 second')
        on conflict (key_hash) do update set failures = a.failures
        returning failures, last_attempt_at < now() - ${WINDOW_MINUTES} * interval '1 minute' as "isOld",
          greatest(0, ceil(extract(epoch from blocked_until - clock_timestamp())))::int as "waitSeconds"`);
      failures.set(key, row && !row.isOld ? row.failures + 1 : 1);
      waitSeconds = Math.max(waitSeconds, row?.waitSeconds ?? 0);
    }
    if (waitSeconds > 0) return waitSeconds;
    for (const [{ hash, free }, attempts] of failures)
      await em.execute(sql`
        update sign_in_attempts set failures = ${attempts}, last_attempt_at = now(),
          blocked_until = clock_timestamp() + ${delaySeconds(attempts - free)} * interval '1 second'
            - interval '1 millisecond'
        where key_hash = ${hash}`);
    return 0;
  });
}

/** The delay after the given number of attempts beyond the free ones. */
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
