/** What an inbox has done in {@link REPUTATION_WINDOW_DAYS} days, recipient by recipient. The simulator's addresses count for nothing. */
export interface SendingStats {
  sends: number;
  /** Permanent bounces that say the address is bad. */
  bounces: number;
  complaints: number;
}

export const REPUTATION_WINDOW_DAYS = 7;
const MIN_SENDS_FOR_BOUNCES = 50;
/** 5 %: one in twenty. */
const MIN_SENDS_PER_BOUNCE = 20;
const MIN_SENDS_FOR_COMPLAINTS = 500;
const MIN_COMPLAINTS = 2;
/** 0.1 %: one in a thousand. */
const MIN_SENDS_PER_COMPLAINT = 1_000;

/** Why an inbox with this record must not go on sending; null where it may. */
export function pauseReason({ sends, bounces, complaints }: SendingStats): string | null {
  const days = `in the last ${REPUTATION_WINDOW_DAYS} days`;
  if (sends >= MIN_SENDS_FOR_BOUNCES && bounces * MIN_SENDS_PER_BOUNCE > sends)
    return `${bounces} of ${sends} mails bounced because the address is bad ${days}: more than 5 %`;
  if (
    sends >= MIN_SENDS_FOR_COMPLAINTS &&
    complaints >= MIN_COMPLAINTS &&
    complaints * MIN_SENDS_PER_COMPLAINT > sends
  )
    return `${complaints} of ${sends} mails were reported as spam ${days}: more than 0.1 %`;
  return null;
}

/** With so many sends or more the record is good, however many more there are: no need to count further. */
export function minSendsBelowThreshold({ bounces, complaints }: Omit<SendingStats, 'sends'>): number {
  return Math.max(
    MIN_SENDS_FOR_BOUNCES,
    bounces * MIN_SENDS_PER_BOUNCE,
    complaints >= MIN_COMPLAINTS
      ? Math.max(MIN_SENDS_FOR_COMPLAINTS, complaints * MIN_SENDS_PER_COMPLAINT)
      : 0,
  );
}

/** So many outcomes of a kind are each worth a look; of more, so many in all. */
const EVALUATE_EACH_UP_TO = { bounces: 100, complaints: 10 };

/**
 * Whether outcomes that have just been added are worth counting the sends, which costs the more the more outcomes
 * there are. At a hundred bounces each is looked at, at ten thousand every hundredth.
 */
export function needsEvaluation(
  kind: keyof typeof EVALUATE_EACH_UP_TO,
  count: number,
  added: number,
): boolean {
  const step = Math.ceil(count / EVALUATE_EACH_UP_TO[kind]);
  return added > 0 && Math.floor(count / step) > Math.floor((count - added) / step);
}
