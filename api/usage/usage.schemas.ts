import { type Static, Type } from 'typebox';
import { TIERS } from '../../domain/organizations/tier.ts';
import { LIMITED_RESOURCES, USAGE_COUNTERS, type UsageCounter } from '../../domain/usage/counters.ts';
import { allowedLimit, type EffectiveLimit, percentageOf } from '../../domain/usage/effective-limit.ts';
import type { CustomLimitChange, OrganizationLimits } from '../../domain/usage/limit.service.ts';
import type { Period } from '../../domain/usage/periods.ts';
import type { ResourceQuota } from '../../domain/usage/resource-quotas.ts';
import { LIMIT_KINDS } from '../../domain/usage/tiers.ts';
import { type DailyUsage, MAX_HISTORY_DAYS } from '../../domain/usage/usage-history.ts';
import { LEDGER_KINDS, type LedgerEntry } from '../../domain/usage/usage-ledger.ts';
import type { UsageStatus } from '../../domain/usage/usage-status.ts';
import { pageQuery } from '../lists.ts';
import { minimalOf } from '../minimal-response.ts';
import { enumOf, resource, strictObject, text, timestamp } from '../schemas.ts';

const UNLIMITED = Number.MAX_SAFE_INTEGER;

const kind = enumOf(LIMIT_KINDS, {
  description: 'soft: only warns. hard: usage beyond the limit is rejected.',
});
const limitFields = {
  limit: Type.Integer({ minimum: 0, description: `The limit in effect; ${UNLIMITED} if there is none.` }),
  unlimited: Type.Boolean(),
  kind,
};
const Counter = strictObject({
  current: Type.Integer({ minimum: 0 }),
  ...limitFields,
  percentage: Type.Number({ minimum: 0, description: 'current in percent of limit, to two decimals.' }),
});
const nullableInteger = (minimum: number, maximum: number, description: string) =>
  Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum, maximum, description });

const CounterLimit = strictObject({
  ...limitFields,
  source: enumOf(['tier', 'override', 'own'], { description: 'Where the limit comes from.' }),
  allowed: nullableInteger(0, UNLIMITED, 'Maximum for own_limit; null: unlimited.'),
  own_limit: nullableInteger(0, UNLIMITED, 'Hard limit set by the organization itself; null: none.'),
  warning_threshold: Type.Integer({
    minimum: 1,
    maximum: 99,
    description: 'Percent of limit at which owners are warned.',
  }),
});
const ResourceLimit = strictObject({ current: Type.Integer({ minimum: 0 }), ...limitFields });

/** Builds a record with one member per counter. */
function mapCounters<Member>(member: (counter: UsageCounter) => Member): Record<UsageCounter, Member> {
  const members = USAGE_COUNTERS.map((counter) => [counter, member(counter)]);
  return Object.fromEntries(members) as Record<UsageCounter, Member>;
}

export const UsageRecord = resource(
  'usage',
  {
    period: strictObject({
      start: timestamp('Start of the month, UTC.'),
      end: timestamp('Start of the next month, when all counters except storage_bytes reset.'),
    }),
    counters: strictObject(mapCounters(() => Counter)),
  },
  { $id: 'Usage', title: 'Usage' },
);

export const LimitsRecord = resource(
  'limits',
  {
    tier: enumOf(TIERS),
    counters: strictObject(mapCounters(() => CounterLimit)),
    inboxes: ResourceLimit,
    domains: ResourceLimit,
  },
  { $id: 'Limits', title: 'Limits' },
);

/** Limits have neither ids nor a version. */
export const MinimalLimits = minimalOf(LimitsRecord, []);

const CustomLimit = strictObject({
  own_limit: Type.Optional(nullableInteger(0, UNLIMITED, 'Usage beyond it is rejected; null removes it.')),
  warning_threshold: Type.Optional(
    nullableInteger(1, 99, 'Percent of the limit at which owners are warned; null: 80.'),
  ),
});

export const SetLimits = strictObject(
  { counters: strictObject(mapCounters(() => Type.Optional(CustomLimit))) },
  {
    $id: 'SetLimits',
    title: 'SetLimits',
    description: 'Omitted counters and fields keep their values.',
  },
);

const day = (description: string) =>
  text(40, {
    pattern: '^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}[0-9:.]*(Z|[+-]\\d{2}:\\d{2}))?$',
    description: `${description} A date such as 2026-11-21, or any time on that day.`,
  });

export const HistoryQuery = strictObject({
  start: Type.Optional(day('First day (UTC). Default: 30 days before end.')),
  end: Type.Optional(day('Last day, inclusive. Default: today.')),
});

export const UsageHistory = resource(
  'usage_history',
  {
    data: Type.Array(
      strictObject({
        date: text(10, { description: 'Day (UTC), for example 2026-11-21.' }),
        ...mapCounters((counter) =>
          Type.Integer({
            description: counter === 'storage_bytes' ? 'Value at the end of the day.' : 'Usage on that day.',
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
  type: Type.Optional(enumOf(LEDGER_KINDS, { description: 'Only entries of this type.' })),
});

export const UsageEventRecord = resource(
  'usage_event',
  {
    id: text(255),
    type: enumOf(LEDGER_KINDS),
    counter: Type.Unsafe<LedgerEntry['counter']>({
      type: ['string', 'null'],
      enum: [...LIMITED_RESOURCES, null],
      description: 'Null if the event concerns all counters.',
    }),
    data: Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      additionalProperties: true,
      description: 'Depends on type; see docs/usage.md.',
    }),
    actor: text(255, { description: 'API key or administrator that made the change, or system.' }),
    created_at: timestamp(),
  },
  { $id: 'UsageEvent', title: 'UsageEvent' },
);

function presentLimit({ limit, kind: given }: EffectiveLimit) {
  return { limit: limit ?? UNLIMITED, unlimited: limit === null, kind: given };
}

export function presentUsage({
  period,
  counters,
}: {
  period: Period;
  counters: UsageStatus[];
}): Static<typeof UsageRecord> {
  const byCounter = new Map(counters.map((status) => [status.counter, status]));
  return {
    object: 'usage',
    period: { start: period.start.toISOString(), end: period.end.toISOString() },
    counters: mapCounters((counter) => {
      const { current, limit } = byCounter.get(counter) as UsageStatus;
      return { current, ...presentLimit(limit), percentage: percentageOf(current, limit.limit) };
    }),
  };
}

export function presentLimits({
  tier,
  counters,
  resources,
}: OrganizationLimits): Static<typeof LimitsRecord> {
  const byCounter = new Map(counters.map((status) => [status.counter, status]));
  const byResource = new Map(resources.map((quota) => [quota.resource, quota]));
  const presentResource = (resource: ResourceQuota['resource']) => {
    const { current, limit } = byResource.get(resource) as ResourceQuota;
    return { current, ...presentLimit(limit) };
  };
  return {
    object: 'limits',
    tier,
    counters: mapCounters((counter) => {
      const { limit, limitInputs, warningPercent } = byCounter.get(counter) as UsageStatus;
      return {
        ...presentLimit(limit),
        source: limit.source,
        allowed: allowedLimit(counter, limitInputs).limit,
        own_limit: limitInputs.customLimit,
        warning_threshold: warningPercent,
      };
    }),
    inboxes: presentResource('inboxes'),
    domains: presentResource('domains'),
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
  return { object: 'usage_history', data: days.map(({ date, amounts }) => ({ date, ...amounts })) };
}

export function presentLedgerEntry(entry: LedgerEntry): Static<typeof UsageEventRecord> {
  const { id, kind: type, counter, data, actor, at } = entry;
  return { object: 'usage_event', id, type, counter, data, actor, created_at: at.toISOString() };
}
