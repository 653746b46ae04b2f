import type { MetricCounts } from './metric-counts.ts';

/** Outcomes of the messages sent in a time range. Rates are between 0 and 1; `docs/metrics.md` defines each. */
export interface Deliverability {
  /** 0 to 100; null if too few messages were sent for a score. */
  score: number | null;
  deliveryRate: number;
  bounceRate: number;
  complaintRate: number;
  rejectionRate: number;
  /** Messages attempted. */
  sampleSize: number;
  warnings: string[];
}

/** With fewer sends, a single bounce would dominate the score. */
const MIN_SAMPLE_SIZE = 20;

interface Penalty {
  /** Points deducted in full at `maxRate`, and proportionally below it. */
  points: number;
  maxRate: number;
}

/** All points are lost at twice the rate at which mailbox providers act. */
const PENALTIES = {
  bounce: { points: 50, maxRate: 0.1 },
  complaint: { points: 40, maxRate: 0.006 },
  rejection: { points: 10, maxRate: 0.2 },
} satisfies Record<string, Penalty>;

/** Published by large mailbox and sending providers: `warning` puts a sender under review, `critical` limits it. */
const THRESHOLDS = {
  bounce: { warning: 0.02, critical: 0.05 },
  complaint: { warning: 0.001, critical: 0.003 },
} as const;

/** Computes score, rates and warnings from the counts of a time range. */
export function scoreDeliverability(counts: MetricCounts): Deliverability {
  const { attempted } = counts;
  const rates = {
    deliveryRate: ratio(counts.delivered, attempted),
    bounceRate: ratio(counts.bounced, attempted),
    complaintRate: ratio(counts.complained, attempted),
    rejectionRate: ratio(counts.rejected, attempted + counts.rejected),
  };
  if (attempted < MIN_SAMPLE_SIZE)
    return {
      score: null,
      ...rates,
      sampleSize: attempted,
      warnings: [`A score needs at least ${MIN_SAMPLE_SIZE} sends; there were ${attempted}.`],
    };
  const lost =
    deduction(PENALTIES.bounce, rates.bounceRate) +
    deduction(PENALTIES.complaint, rates.complaintRate) +
    deduction(PENALTIES.rejection, rates.rejectionRate);
  return {
    score: Math.round(100 - lost),
    ...rates,
    sampleSize: attempted,
    warnings: [
      ...findWarnings('bounce', rates.bounceRate),
      ...findWarnings('complaint', rates.complaintRate),
    ],
  };
}

/**
 * Capped at 1: a report can arrive in a later hour than its send, so a short range can have more reports than sends.
 */
function ratio(part: number, whole: number): number {
  if (whole === 0) return 0;
  return Math.round(Math.min(1, part / whole) * 1_000_000) / 1_000_000;
}

function deduction({ points, maxRate }: Penalty, rate: number): number {
  return points * Math.min(1, rate / maxRate);
}

function findWarnings(name: keyof typeof THRESHOLDS, rate: number): string[] {
  const { warning, critical } = THRESHOLDS[name];
  const level = rate >= critical ? 'critical' : 'warning';
  if (rate < warning) return [];
  const threshold = rate >= critical ? critical : warning;
  return [
    `The ${name} rate is ${formatPercent(rate)}; the ${level} threshold is ${formatPercent(threshold)}.`,
  ];
}

function formatPercent(rate: number): string {
  return `${Number((rate * 100).toFixed(2))}%`;
}
