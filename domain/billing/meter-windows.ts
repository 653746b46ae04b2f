import type { Tier } from '../organizations/tier.ts';
import { TIER_LIMITS } from '../usage/tiers.ts';
import type { MeteredCounter } from './metered-counters.ts';

export const HOUR_MS = 3_600_000;

/** A span of time; `until` is null if it has no end. */
export interface Span {
  from: Date;
  until: Date | null;
}

/** The limits granted to an organization over time, according to the usage ledger and its suspensions. */
export interface GrantHistory {
  counter: MeteredCounter;
  /** The current tier. */
  tier: Tier;
  /** In order of time. */
  tierChanges: readonly { at: Date; from: Tier; to: Tier }[];
  /** When staff overrode the limit of the counter. */
  overrides: readonly Span[];
  /** When the organization was suspended. */
  suspensions: readonly Span[];
}

export interface MeterState {
  /** Start of the first hour that is not settled. */
  settledUntil: Date;
  /** Highest amount of the month of the last settled hour; null before the first one. */
  highestAmount: number | null;
}

export interface UsedHour {
  start: Date;
  /** Change of the counter; negative if more was refunded than used. */
  amount: number;
}

export interface SettledHours extends MeterState {
  /** Billable use, in order of time. Hours without billable use are left out. */
  billable: { start: Date; units: number }[];
}

/**
 * Settles the hours up to `until`. Only use above both the tier's limit and the highest settled amount of the month is
 * billable. So corrections are never negative, and use that is counted again after a correction is not billed twice. An hour
 * is billed only if a tier's soft limit applied throughout.
 *
 * @param amountBefore use in the month of `settledUntil` before that time.
 * @param hours from `settledUntil` on, in order.
 */
export function settleHours(
  history: GrantHistory,
  { settledUntil, highestAmount }: MeterState,
  { amountBefore, hours, until }: { amountBefore: number; hours: readonly UsedHour[]; until: Date },
): SettledHours {
  let month = monthKey(settledUntil);
  let amount = amountBefore;
  let highest = Math.max(highestAmount ?? amountBefore, 0);
  const billable: SettledHours['billable'] = [];
  for (const { start, amount: used } of hours) {
    if (monthKey(start) !== month) {
      month = monthKey(start);
      amount = 0;
      highest = 0;
    }
    amount += used;
    const limit = billedLimit(history, { from: start, until: new Date(start.getTime() + HOUR_MS) });
    const units = limit === null ? 0 : amount - Math.max(highest, limit);
    if (units > 0) billable.push({ start, units });
    highest = Math.max(highest, amount);
  }
  return { settledUntil: until, highestAmount: monthKey(until) === month ? highest : 0, billable };
}

/** The limit beyond which use in the window is billed: the highest that applied; null if the window is not billed. */
function billedLimit(
  { counter, tier, tierChanges, overrides, suspensions }: GrantHistory,
  window: { from: Date; until: Date },
): number | null {
  if ([...overrides, ...suspensions].some((span) => overlaps(span, window))) return null;
  let highest = 0;
  for (const applied of tiersWithin(tier, tierChanges, window)) {
    const { kind, limits } = TIER_LIMITS[applied];
    const limit = limits[counter];
    if (kind !== 'soft' || limit === null) return null;
    highest = Math.max(highest, limit);
  }
  return highest;
}

function tiersWithin(
  tier: Tier,
  changes: GrantHistory['tierChanges'],
  { from, until }: { from: Date; until: Date },
): Tier[] {
  const later = changes.filter(({ at }) => at > from);
  return [later[0]?.from ?? tier, ...later.filter(({ at }) => at < until).map(({ to }) => to)];
}

const overlaps = (span: Span, window: { from: Date; until: Date }): boolean =>
  span.from < window.until && (span.until === null || span.until > window.from);

const monthKey = (time: Date): string => time.toISOString().slice(0, 7);
