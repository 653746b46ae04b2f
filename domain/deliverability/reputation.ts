/** Counts per recipient over {@link REPUTATION_WINDOW_DAYS} days, without the simulator's addresses. */
export interface SendingStats {
  sends: number;
  /** Permanent bounces because of an invalid address. */
  bounces: number;
  complaints: number;
}

export const REPUTATION_WINDOW_DAYS = 7;
const MIN_SENDS_FOR_BOUNCES = 50;
/** 1 in 20: 5%. */
const MIN_SENDS_PER_BOUNCE = 20;
const MIN_SENDS_FOR_COMPLAINTS = 500;
const MIN_COMPLAINTS = 2;
/** 1 in 1,000: 0.1%. */
const MIN_SENDS_PER_COMPLAINT = 1_000;

/** Why an inbox with these counts must stop sending; null if it may continue. */
export function findPauseReason({ sends, bounces, complaints }: SendingStats): string | null {
  const days = `in the last ${REPUTATION_WINDOW_DAYS} days`;
  if (sends >= MIN_SENDS_FOR_BOUNCES && bounces * MIN_SENDS_PER_BOUNCE > sends)
    return `${bounces} of ${sends} messages bounced because of an invalid address ${days}: more than 5%`;
  if (
    sends >= MIN_SENDS_FOR_COMPLAINTS &&
    complaints >= MIN_COMPLAINTS &&
    complaints * MIN_SENDS_PER_COMPLAINT > sends
  )
    return `${complaints} of ${sends} messages were reported as spam ${days}: more than 0.1%`;
  return null;
}

/** With this many sends or more, both rates are below their thresholds: there is no need to count further. */
export function minSendsBelowThreshold({ bounces, complaints }: Omit<SendingStats, 'sends'>): number {
  return Math.max(
    MIN_SENDS_FOR_BOUNCES,
    bounces * MIN_SENDS_PER_BOUNCE,
    complaints >= MIN_COMPLAINTS
      ? Math.max(MIN_SENDS_FOR_COMPLAINTS, complaints * MIN_SENDS_PER_COMPLAINT)
      : 0,
  );
}

/** Up to this count every outcome is evaluated; above it, only every nth. */
const EVALUATE_EACH_UP_TO = { bounces: 100, complaints: 10 };

/**
 * Whether to count the sends after new outcomes. Counting becomes more expensive as outcomes accumulate: up to 100
 * bounces, every bounce is evaluated; at 10,000, every hundredth.
 */
export function needsEvaluation(
  kind: keyof typeof EVALUATE_EACH_UP_TO,
  count: number,
  added: number,
): boolean {
  const step = Math.ceil(count / EVALUATE_EACH_UP_TO[kind]);
  return added > 0 && Math.floor(count / step) > Math.floor((count - added) / step);
}
