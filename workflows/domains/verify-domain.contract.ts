/** Contract of one series of checks of a domain's DNS records. */
export const VERIFY_DOMAIN = 'verifyDomain';
/** @param generation number of the series. A new one begins with creation, `verify` after the last one ended, key rotation. */
export const verifyDomainWorkflowId = (domainId: string, generation: number): string =>
  `domain/${domainId}/${generation}`;

export interface VerifyDomainInput {
  domainId: string;
  generation: number;
}

/** Signal: check now. A check in progress finishes first. */
export const CHECK_NOW = 'checkNow';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** How long checks continue before the domain fails. */
export const VERIFICATION_WINDOW_MS = 72 * HOUR_MS;
/** If DNS gives no answer at the end of the window, checks continue for up to this long. */
export const UNANSWERED_VERIFICATION_WINDOW_MS = 14 * 24 * HOUR_MS;

/** Intervals between checks: short at first, while a user is probably waiting; long later, for slow zones. */
const CHECK_INTERVALS = [
  { intervalMs: MINUTE_MS, times: 10 },
  { intervalMs: 5 * MINUTE_MS, times: 12 },
  { intervalMs: 30 * MINUTE_MS, times: 24 },
] as const;
const FINAL_INTERVAL_MS = 2 * HOUR_MS;

/**
 * The delay until the next check, from the time since the series started. Early or late checks do not shift the
 * schedule. The last check is at the end of the window.
 */
export function nextCheckDelayMs(elapsedMs: number): number {
  let stepEndMs = 0;
  for (const { intervalMs, times } of CHECK_INTERVALS) {
    const stepStartMs = stepEndMs;
    stepEndMs += intervalMs * times;
    if (elapsedMs < stepEndMs) return intervalMs - ((elapsedMs - stepStartMs) % intervalMs);
  }
  const intervalMs = FINAL_INTERVAL_MS - ((elapsedMs - stepEndMs) % FINAL_INTERVAL_MS);
  const leftMs = VERIFICATION_WINDOW_MS - elapsedMs;
  return leftMs > 0 ? Math.min(intervalMs, leftMs) : intervalMs;
}
