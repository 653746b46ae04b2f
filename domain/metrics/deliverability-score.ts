import type { MetricCounts } from './metric-counts.ts';

/** What became of the mail of a time; rates are shares from 0 to 1. `docs/metrics.md` explains each. */
export interface Deliverability {
  /** 0 to 100; null where too few mails were sent to judge. */
  score: number | null;
  deliveryRate: number;
  bounceRate: number;
  complaintRate: number;
  rejectionRate: number;
  /** Mails attempted. */
  sampleSize: number;
  warnings: string[];
}

/** One bounce among fewer says nothing. */
const LEAST_SAMPLE = 20;

interface Rule {
  /** Points that are lost in full at `worst`, and in proportion below. */
  points: number;
  worst: number;
}

/** Each is gone at twice the rate mailbox providers act at. */
const RULES = {
  bounce: { points: 50, worst: 0.1 },
  complaint: { points: 40, worst: 0.006 },
  rejection: { points: 10, worst: 0.2 },
} satisfies Record<string, Rule>;

/** What the large mailbox and sending providers publish: from the first a sender is watched, from the second it is limited. */
const THRESHOLDS = {
  Bounces: { warning: 0.02, critical: 0.05 },
  Complaints: { warning: 0.001, critical: 0.003 },
} as const;

/** Score, rates and warnings of what was counted in a time. */
export function judgeDeliverability(counts: MetricCounts): Deliverability {
  const { attempted } = counts;
  const rates = {
    deliveryRate: share(counts.delivered, attempted),
    bounceRate: share(counts.bounced, attempted),
    complaintRate: share(counts.complained, attempted),
    rejectionRate: share(counts.rejected, attempted + counts.rejected),
  };
  if (attempted < LEAST_SAMPLE)
    return {
      score: null,
      ...rates,
      sampleSize: attempted,
      warnings: [`${attempted} sends are too few for a score, which needs ${LEAST_SAMPLE}.`],
    };
  const lost =
    pointsLost(RULES.bounce, rates.bounceRate) +
    pointsLost(RULES.complaint, rates.complaintRate) +
    pointsLost(RULES.rejection, rates.rejectionRate);
  return {
    score: Math.round(100 - lost),
    ...rates,
    sampleSize: attempted,
    warnings: [...warningOf('Bounces', rates.bounceRate), ...warningOf('Complaints', rates.complaintRate)],
  };
}

/** A report may come in another hour than its mail went: in a short time there can be more of them than mails. */
function share(part: number, whole: number): number {
  if (whole === 0) return 0;
  return Math.round(Math.min(1, part / whole) * 1_000_000) / 1_000_000;
}

function pointsLost({ points, worst }: Rule, rate: number): number {
  return points * Math.min(1, rate / worst);
}

function warningOf(name: keyof typeof THRESHOLDS, rate: number): string[] {
  const { warning, critical } = THRESHOLDS[name];
  const level = rate >= critical ? 'critical' : 'warning';
  if (rate < warning) return [];
  const threshold = rate >= critical ? critical : warning;
  return [`${name} are at ${percent(rate)}, the ${level} threshold is ${percent(threshold)}.`];
}

function percent(rate: number): string {
  return `${Number((rate * 100).toFixed(2))} %`;
}
