/** Contract of one series of looks at a domain's DNS records. */
export const VERIFY_DOMAIN = 'verifyDomain';
/** @param episode rises with each series: the creation, a `verify` after the last one ended, a key rotation. */
export const verifyDomainWorkflowId = (domainId: string, episode: number): string =>
  `domain/${domainId}/${episode}`;

export interface VerifyDomainInput {
  domainId: string;
  episode: number;
}

/** Signal: look now; a look under way is left to end first. */
export const CHECK_NOW = 'checkNow';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** How long looks go on before a domain has failed. */
export const VERIFICATION_WINDOW_MS = 72 * HOUR_MS;
/** Where DNS gives no answer at the window's end, nothing is concluded from that for so long. */
export const UNANSWERED_VERIFICATION_WINDOW_MS = 14 * 24 * HOUR_MS;

/** Pauses between looks: the first while somebody sits in front of it, the last for slow zones. */
const CHECK_INTERVALS = [
  { intervalMs: MINUTE_MS, times: 10 },
  { intervalMs: 5 * MINUTE_MS, times: 12 },
  { intervalMs: 30 * MINUTE_MS, times: 24 },
] as const;
const FINAL_INTERVAL_MS = 2 * HOUR_MS;

/**
 * The pause after a look, by the time since the series began. A look that came in between, or late, moves no other:
 * the schedule stands. The window's end has a look of its own.
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
