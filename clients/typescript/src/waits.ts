import type { Received } from './answer.ts';
import { TimeoutError } from './errors.ts';
import type { RequestOptions } from './requests.ts';

/** The longest that the service holds one call open. */
const MAX_POLL_SECONDS = 300;
const DEFAULT_WAIT_SECONDS = 300;
/** Without `since`, messages of the last 30 seconds count, too; two more, as a Date header has whole seconds. */
const LOOK_BACK_MS = 32_000;

export interface WaitOptions extends RequestOptions {
  /** How long to wait in total. Default: 300. */
  timeoutSeconds?: number | undefined;
}

export interface Poll {
  /** At most 300. */
  timeoutSeconds: number;
  /** For later polls: what arrived since the first one began counts. */
  since: string | undefined;
  options: RequestOptions;
}

interface TimedOut {
  object: 'timeout';
}

/**
 * Calls a waiting operation until it has something.
 *
 * @param missing what did not happen, as a sentence without its end: `No message came to inb_…`.
 * @throws TimeoutError if that does not happen in time.
 */
export async function waitFor<T extends { object: string }>(
  missing: string,
  { timeoutSeconds = DEFAULT_WAIT_SECONDS, ...options }: WaitOptions,
  poll: (poll: Poll) => Promise<Received<T>>,
): Promise<Exclude<T, TimedOut>> {
  const startedAt = performance.now();
  let since: string | undefined;
  for (;;) {
    const leftSeconds = timeoutSeconds - (performance.now() - startedAt) / 1000;
    const pollSeconds = Math.max(1, Math.min(MAX_POLL_SECONDS, Math.ceil(leftSeconds)));
    const { data, response } = await poll({ timeoutSeconds: pollSeconds, since, options });
    if (data.object !== 'timeout') return data as Exclude<T, TimedOut>;
    // By the clock of the service.
    const now = Date.parse(response.headers.get('date') ?? '') || Date.now();
    since ??= new Date(now - (performance.now() - startedAt) - LOOK_BACK_MS).toISOString();
    if ((performance.now() - startedAt) / 1000 >= timeoutSeconds)
      throw new TimeoutError(`${missing} within ${timeoutSeconds} s.`);
  }
}
