import type { APIError } from './errors.ts';

/** A longer Retry-After is for the caller to wait. */
const MAX_RETRY_AFTER_MS = 60_000;
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 8_000;

/** Null if repeating does not help, or not soon. */
export function retryDelayMs(error: APIError, attempt: number): number | null {
  if (!isTransient(error)) return null;
  const wanted = readRetryAfterMs(error.headers);
  if (wanted === null) return isLimitReached(error) ? null : backOffMs(attempt);
  return wanted > MAX_RETRY_AFTER_MS ? null : wanted;
}

const isTransient = ({ status, code }: APIError): boolean =>
  status === 408 || status === 429 || status >= 500 || (status === 409 && code === 'request_in_progress');

/** The limit of a day or month: the answer says when it ends, instead of Retry-After. */
const isLimitReached = ({ status, code, problem }: APIError): boolean =>
  status === 429 && (code === 'usage_limit_exceeded' || problem?.resets_at !== undefined);

/** @param attempt the number of the attempt that failed, from 0. */
export function backOffMs(attempt: number, maxMs = MAX_DELAY_MS): number {
  return Math.min(maxMs, FIRST_DELAY_MS * 2 ** attempt) * (0.5 + Math.random() / 2);
}

/** Seconds, or a date (RFC 9110 section 10.2.3). */
function readRetryAfterMs(headers: Headers): number | null {
  const text = headers.get('retry-after')?.trim();
  if (!text) return null;
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  // Relative to the clock of the server, where it tells it.
  const now = Date.parse(headers.get('date') ?? '') || Date.now();
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}

/** @throws the signal's reason. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', abort, { once: true });
  });
}
