import { type Static, Type } from 'typebox';
import { TIERS } from '../../domain/organizations/tier.ts';
import type { ResourceQuota } from '../../domain/usage/resource-quotas.ts';
import { LIMITED_RESOURCES, USAGE_COUNTERS, type UsageCounter } from '../../domain/usage/counters.ts';
import { allowedLimit, type EffectiveLimit, percentageOf } from '../../domain/usage/effective-limit.ts';
import type { OrganizationLimits, CustomLimitChange } from '../../domain/usage/limit.service.ts';
import type { Period } from '../../domain/usage/periods.ts';
import type { UsageStatus } from '../../domain/usage/usage-status.ts';
import { LIMIT_KINDS } from '../../domain/usage/tiers.ts';
import { type DailyUsage, MAX_HISTORY_DAYS } from '../../domain/usage/usage-history.ts';
import { LEDGER_KINDS, type LedgerEntry } from '../../domain/usage/usage-ledger.ts';
import { pageQuery } from '../lists.ts';
import { enumOf, strictObject, text, timestamp } from '../schemas.ts';

const UNLIMITED = Number.MAX_SAFE_INTEGER;

const kind = enumOf(LIMIT_KINDS, {
  description: 'soft: warnings, nothing is refused. hard: refused at 100 %.',
});
const limitFields = {
  limit: Type.Integer({ minimum: 0, description: `What holds; ${UNLIMITED} where there is no limit.` }),
  unlimited: Type.Boolean(),
  kind,
};
const Counter = strictObject({
  current: Type.Integer({ minimum: 0 }),
  ...limitFields,
  percentage: Type.Number({ minimum: 0, description: 'current as a share of limit, to two places.' }),
});
const nullableInteger = (minimum: number, maximum: number, description: string) =>
  Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum, maximum, description });

const CounterLimit = strictObject({
  ...limitFields,
  source: enumOf(['tier', 'override', 'own'], { description: 'Whose word it is.' }),
  allowed: nullableInteger(0, UNLIMITED, 'What own_limit may be at most; null: unlimited.'),
  own_limit: nullableInteger(0, UNLIMITED, 'The organization’s own cap, hard; null: none.'),
  warning_threshold: Type.Integer({ minimum: 1, maximum: 99, description: 'Percent of limit.' }),
});
const ResourceLimit = strictObject({ current: Type.Integer({ minimum: 0 }), ...limitFields });

/** A record with one member for each counter. */
function mapCounters<Member>(member: (counter: UsageCounter) => Member): Record<UsageCounter, Member> {
  const members = USAGE_COUNTERS.map((counter) => [counter, member(counter)]);
  return Object.fromEntries(members) as Record<UsageCounter, Member>;
}

export const UsageRecord = strictObject(
  {
    period: strictObject({
      start: timestamp('Start of the month, UTC.'),
      end: timestamp('Start of the next one; all counters but storage_bytes start anew.'),
    }),
    counters: strictObject(mapCounters(() => Counter)),
  },
  { $id: 'Usage', title: 'Usage' },
);

export const LimitsRecord = strictObject(
  {
    tier: enumOf(TIERS),
    counters: strictObject(mapCounters(() => CounterLimit)),
    inboxes: ResourceLimit,
    domains: ResourceLimit,
  },
  { $id: 'Limits', title: 'Limits' },
);

const CustomLimit = strictObject({
  own_limit: Type.Optional(
    nullableInteger(0, UNLIMITED, 'Nothing is let through beyond it; null takes it away.'),
  ),
  warning_threshold: Type.Optional(
    nullableInteger(1, 99, 'Percent of the limit at which owners are warned; null: 80.'),
  ),
});

export const SetLimits = strictObject(
  { counters: strictObject(mapCounters(() => Type.Optional(CustomLimit))) },
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

export const HistoryQuery = strictObject({
  start: Type.Optional(day('First day (UTC); 30 days before end, where it is left out.')),
  end: Type.Optional(day('Last day, included; today, where it is left out.')),
});

export const UsageHistory = strictObject(
  {
    data: Type.Array(
      strictObject({
        date: text(10, { description: 'The day, UTC, as 2026-11-21.' }),
        ...mapCounters((counter) =>
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

export const LedgerQuery = strictObject({
  ...pageQuery,
  type: Type.Optional(enumOf(LEDGER_KINDS)),
});

export const UsageEventRecord = strictObject(
  {
    id: text(255),
    type: enumOf(LEDGER_KINDS),
    counter: Type.Unsafe<LedgerEntry['counter']>({
      type: ['string', 'null'],
      enum: [...LIMITED_RESOURCES, null],
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
  standings: UsageStatus[];
}): Static<typeof UsageRecord> {
  const of = new Map(standings.map((standing) => [standing.counter, standing]));
  return {
    period: { start: period.start.toISOString(), end: period.end.toISOString() },
    counters: mapCounters((counter) => {
      const { current, limit } = of.get(counter) as UsageStatus;
      return { current, ...presentLimit(limit), percentage: percentageOf(current, limit.limit) };
    }),
  };
}

export function presentLimits({ tier, counters: standings, resources: capped }: OrganizationLimits): Static<typeof LimitsRecord> {
  const of = new Map(standings.map((standing) => [standing.counter, standing]));
  const things = new Map(capped.map((entry) => [entry.resource, entry]));
  const presentThing = (thing: ResourceQuota['resource']) => {
    const { current, limit } = things.get(thing) as ResourceQuota;
    return { current, ...presentLimit(limit) };
  };
  return {
    tier,
    counters: mapCounters((counter) => {
      const { limit, limitInputs: facts, warningPercent } = of.get(counter) as UsageStatus;
      return {
        ...presentLimit(limit),
        source: limit.source,
        allowed: allowedLimit(counter, facts).limit,
        own_limit: facts.customLimit,
        warning_threshold: warningPercent,
      };
    }),
    inboxes: presentThing('inboxes'),
    domains: presentThing('domains'),
  };
}

export function readCustomLimits({
  counters,
}: Static<typeof SetLimits>): Partial<Record<UsageCounter, CustomLimitChange>> {
  const changes = Object.entries(counters).map(([counter, { own_limit, warning_threshold }]) => [
    counter,
    {
      ...(own_limit === undefined ? {} : { limit: own_limit }),
      ...(warning_threshold === undefined ? {} : { warningPercent: warning_threshold }),
    },
  ]);
  return Object.fromEntries(changes);
}

export function presentHistory(days: DailyUsage[]): Static<typeof UsageHistory> {
  return { data: days.map(({ date, amounts }) => ({ date, ...amounts })) };
}

export function presentLedgerEntry(entry: LedgerEntry): Static<typeof UsageEventRecord> {
  const { id, kind: type, counter, data, actor, at } = entry;
  return { id, type, counter, data, actor, created_at: at.toISOString() };
}
