import { type Static, Type } from 'typebox';
import { TIERS } from '../../domain/organizations/tier.ts';
import type { Capped } from '../../domain/usage/capped-things.ts';
import { LIMITED, USAGE_COUNTERS, type UsageCounter } from '../../domain/usage/counters.ts';
import { allowedLimit, type EffectiveLimit, percentageOf } from '../../domain/usage/effective-limit.ts';
import type { LimitsReading, OwnLimitChange } from '../../domain/usage/limit.service.ts';
import type { Period } from '../../domain/usage/periods.ts';
import type { Standing } from '../../domain/usage/standings.ts';
import { LIMIT_KINDS } from '../../domain/usage/tiers.ts';
import { type DayOfUsage, MAX_HISTORY_DAYS } from '../../domain/usage/usage-history.ts';
import { LEDGER_KINDS, type LedgerEntry } from '../../domain/usage/usage-ledger.ts';
import { pageQuery } from '../lists.ts';
import { choice, closed, text, timestamp } from '../schemas.ts';

const UNLIMITED = Number.MAX_SAFE_INTEGER;

const kind = choice(LIMIT_KINDS, {
  description: 'soft: warnings, nothing is refused. hard: refused at 100 %.',
});
const limitFields = {
  limit: Type.Integer({ minimum: 0, description: `What holds; ${UNLIMITED} where there is no limit.` }),
  unlimited: Type.Boolean(),
  kind,
};
const Counter = closed({
  current: Type.Integer({ minimum: 0 }),
  ...limitFields,
  percentage: Type.Number({ minimum: 0, description: 'current as a share of limit, to two places.' }),
});
const nullableInteger = (minimum: number, maximum: number, description: string) =>
  Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum, maximum, description });

const LimitOfCounter = closed({
  ...limitFields,
  source: choice(['tier', 'override', 'own'], { description: 'Whose word it is.' }),
  allowed: nullableInteger(0, UNLIMITED, 'What own_limit may be at most; null: unlimited.'),
  own_limit: nullableInteger(0, UNLIMITED, 'The organization’s own cap, hard; null: none.'),
  warning_threshold: Type.Integer({ minimum: 1, maximum: 99, description: 'Percent of limit.' }),
});
const LimitOfThing = closed({ current: Type.Integer({ minimum: 0 }), ...limitFields });

/** A record with one member for each counter. */
function ofCounters<Member>(member: (counter: UsageCounter) => Member): Record<UsageCounter, Member> {
  const members = USAGE_COUNTERS.map((counter) => [counter, member(counter)]);
  return Object.fromEntries(members) as Record<UsageCounter, Member>;
}

export const UsageRecord = closed(
  {
    period: closed({
      start: timestamp('Start of the month, UTC.'),
      end: timestamp('Start of the next one; all counters but storage_bytes start anew.'),
    }),
    counters: closed(ofCounters(() => Counter)),
  },
  { $id: 'Usage', title: 'Usage' },
);

export const LimitsRecord = closed(
  {
    tier: choice(TIERS),
    counters: closed(ofCounters(() => LimitOfCounter)),
    inboxes: LimitOfThing,
    domains: LimitOfThing,
  },
  { $id: 'Limits', title: 'Limits' },
);

const OwnLimit = closed({
  own_limit: Type.Optional(
    nullableInteger(0, UNLIMITED, 'Nothing is let through beyond it; null takes it away.'),
  ),
  warning_threshold: Type.Optional(
    nullableInteger(1, 99, 'Percent of the limit at which owners are warned; null: 80.'),
  ),
});

export const SetLimits = closed(
  { counters: closed(ofCounters(() => Type.Optional(OwnLimit))) },
  {
    $id: 'SetLimits',
    title: 'SetLimits',
    description: 'Counters and fields that are left out stay as they are.',
  },
);

const day = (description: string) =>
  text(40, {
    pattern: '^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}[0-9:.]*(Z|[+-]\\d{2}:\\d{2}))?$',
    description: `${description} As 2026-11-21, or any time within the day.`,
  });

export const HistoryQuery = closed({
  start: Type.Optional(day('First day (UTC); 30 days before end, where it is left out.')),
  end: Type.Optional(day('Last day, included; today, where it is left out.')),
});

export const UsageHistory = closed(
  {
    data: Type.Array(
      closed({
        date: text(10, { description: 'The day, UTC, as 2026-11-21.' }),
        ...ofCounters((counter) =>
          Type.Integer({
            description: counter === 'storage_bytes' ? 'At the end of the day.' : 'Counted on the day.',
          }),
        ),
      }),
      { maxItems: MAX_HISTORY_DAYS },
    ),
  },
  { $id: 'UsageHistory', title: 'UsageHistory' },
);

export const LedgerQuery = closed({
  ...pageQuery,
  type: Type.Optional(choice(LEDGER_KINDS)),
});

export const UsageEventRecord = closed(
  {
    id: text(255),
    type: choice(LEDGER_KINDS),
    counter: Type.Unsafe<LedgerEntry['counter']>({
      type: ['string', 'null'],
      enum: [...LIMITED, null],
      description: 'Null for what concerns all counters.',
    }),
    data: Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      additionalProperties: true,
      description: 'By type, as docs/usage.md says.',
    }),
    actor: text(255, { description: 'A key or an administrator; system where nobody did it.' }),
    created_at: timestamp(),
  },
  { $id: 'UsageEvent', title: 'UsageEvent' },
);

function presentLimit({ limit, kind: given }: EffectiveLimit) {
  return { limit: limit ?? UNLIMITED, unlimited: limit === null, kind: given };
}

export function presentUsage({
  period,
  standings,
}: {
  period: Period;
  standings: Standing[];
}): Static<typeof UsageRecord> {
  const of = new Map(standings.map((standing) => [standing.counter, standing]));
  return {
    period: { start: period.start.toISOString(), end: period.end.toISOString() },
    counters: ofCounters((counter) => {
      const { current, limit } = of.get(counter) as Standing;
      return { current, ...presentLimit(limit), percentage: percentageOf(current, limit.limit) };
    }),
  };
}

export function presentLimits({ tier, standings, capped }: LimitsReading): Static<typeof LimitsRecord> {
  const of = new Map(standings.map((standing) => [standing.counter, standing]));
  const things = new Map(capped.map((entry) => [entry.thing, entry]));
  const presentThing = (thing: Capped['thing']) => {
    const { current, limit } = things.get(thing) as Capped;
    return { current, ...presentLimit(limit) };
  };
  return {
    tier,
    counters: ofCounters((counter) => {
      const { limit, facts, warningPercent } = of.get(counter) as Standing;
      return {
        ...presentLimit(limit),
        source: limit.source,
        allowed: allowedLimit(counter, facts).limit,
        own_limit: facts.ownLimit,
        warning_threshold: warningPercent,
      };
    }),
    inboxes: presentThing('inboxes'),
    domains: presentThing('domains'),
  };
}

export function readOwnLimits({
  counters,
}: Static<typeof SetLimits>): Partial<Record<UsageCounter, OwnLimitChange>> {
  const changes = Object.entries(counters).map(([counter, { own_limit, warning_threshold }]) => [
    counter,
    {
      ...(own_limit === undefined ? {} : { limit: own_limit }),
      ...(warning_threshold === undefined ? {} : { warningPercent: warning_threshold }),
    },
  ]);
  return Object.fromEntries(changes);
}

export function presentHistory(days: DayOfUsage[]): Static<typeof UsageHistory> {
  return { data: days.map(({ date, amounts }) => ({ date, ...amounts })) };
}

export function presentLedgerEntry(entry: LedgerEntry): Static<typeof UsageEventRecord> {
  const { id, kind: type, counter, data, actor, at } = entry;
  return { id, type, counter, data, actor, created_at: at.toISOString() };
}
