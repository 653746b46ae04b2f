/** Failed log-ins of an address are counted for so long. */
const WINDOW_MS = 15 * 60_000;
const MAX_FAILURES = 10;
/** Older ones are forgotten first. */
const MAX_ADDRESSES = 10_000;

/** Slows down who guesses passwords. In memory: a process more gives a guesser ten tries more. */
export interface AuthAttempts {
  mayTry(address: string): boolean;
  failed(address: string): void;
}

export function createAuthAttempts(now: () => number = Date.now): AuthAttempts {
  const failures = new Map<string, { count: number; since: number }>();
  const current = (address: string) => {
    const entry = failures.get(address);
    if (entry && now() - entry.since > WINDOW_MS) failures.delete(address);
    return failures.get(address);
  };
  return {
    mayTry: (address) => (current(address)?.count ?? 0) < MAX_FAILURES,
    failed(address) {
      const entry = current(address) ?? { count: 0, since: now() };
      failures.delete(address);
      failures.set(address, { ...entry, count: entry.count + 1 });
      const [oldest] = failures.keys();
      if (failures.size > MAX_ADDRESSES && oldest !== undefined) failures.delete(oldest);
    },
  };
}
