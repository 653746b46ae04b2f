import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Scope } from '../identity/scope.ts';
import { findInboxIncludingDeleted } from '../inboxes/find-inbox.ts';
import { toDomainKey } from '../mime/mail-address.ts';
import { type Deliverability, scoreDeliverability } from './deliverability-score.ts';
import { findInboxActivity, type InboxActivity } from './inbox-activity.ts';
import { addCounts, type MetricCounts, zeroCounts } from './metric-counts.ts';
import { buildMetricQuery, type MetricSubject } from './metric-query.ts';
import { listHours, type MetricRange, type RequestedRange, resolveRange } from './metric-range.ts';

/** Filters by time, inbox and domain. Without inbox and domain: everything that the credential sees in its environment. */
export interface MetricFilter extends RequestedRange {
  inboxId?: string | undefined;
  /** Domain of the inbox addresses, case-insensitive. */
  domain?: string | undefined;
}

export interface HourCounts extends MetricCounts {
  hour: Date;
}

export interface MetricsOverview {
  activity: HourCounts[];
  deliverability: Deliverability;
  summary: MetricCounts;
}

export const MAX_ACTIVITY_DAYS = 31;
export const MAX_SUMMARY_DAYS = 366;

export interface MetricServiceOptions {
  database: Database;
  now?: () => Date;
}

export type MetricService = ReturnType<typeof createMetricService>;

/** Message counts by the hour in which each event happened. Always exact; deleted messages stay counted. */
export function createMetricService({ database, now = () => new Date() }: MetricServiceOptions) {
  /**
   * Returns every hour of the range, oldest first; hours without events have zeros.
   *
   * @throws AppError `not_found` if the credential does not see the inbox; `unprocessable` for an empty range or one
   * longer than {@link MAX_ACTIVITY_DAYS} days.
   */
  async function getActivity(scope: Scope, filter: MetricFilter): Promise<HourCounts[]> {
    const range = resolveRange(filter, now(), MAX_ACTIVITY_DAYS);
    const rows = await readCounts(database, scope, { filter, range, granularity: 'hour' });
    const known = new Map(rows.map((row) => [row.hour?.getTime(), row]));
    return listHours(range).map((hour) => ({ ...(known.get(hour.getTime()) ?? zeroCounts()), hour }));
  }

  /** @throws AppError like `getActivity`, with at most {@link MAX_SUMMARY_DAYS} days. */
  async function getSummary(scope: Scope, filter: MetricFilter): Promise<MetricCounts> {
    const range = resolveRange(filter, now(), MAX_SUMMARY_DAYS);
    const [counts] = await readCounts(database, scope, { filter, range, granularity: 'range' });
    return counts ?? zeroCounts();
  }

  return {
    getActivity,
    getSummary,

    /** @throws AppError like `getSummary`. */
    getDeliverability: async (scope: Scope, filter: MetricFilter): Promise<Deliverability> =>
      scoreDeliverability(await getSummary(scope, filter)),

    /** Returns all three, by default for the last 24 hours. @throws AppError like `getActivity`. */
    async getOverview(scope: Scope, range: RequestedRange = {}): Promise<MetricsOverview> {
      const activity = await getActivity(scope, range);
      const summary = activity.reduce<MetricCounts>(addCounts, zeroCounts());
      return { activity, deliverability: scoreDeliverability(summary), summary };
    },

    /** What happened in each of these inboxes in the last 24 hours, by its id. Inboxes that the credential does not see are missing. */
    getInboxActivity: async (
      scope: Scope,
      inboxIds: readonly string[],
    ): Promise<ReadonlyMap<string, InboxActivity>> => {
      if (inboxIds.length === 0) return new Map();
      const range = resolveRange({}, now(), 1);
      const found = await database.read(scope, ({ db }) => findInboxActivity(db, scope, inboxIds, range));
      return new Map(found.map((activity) => [activity.inboxId, activity]));
    },
  };
}

function readCounts(
  database: Database,
  scope: Scope,
  { filter, ...query }: { filter: MetricFilter; range: MetricRange; granularity: 'hour' | 'range' },
): Promise<(MetricCounts & { hour?: Date | undefined })[]> {
  return database.read(scope, async ({ db }) => {
    const subject = await resolveSubject(db, scope, filter);
    if (subject === 'none') return [];
    return buildMetricQuery(db, { environmentId: scope.environmentId, subject, ...query }).execute();
  });
}

/** A credential bound to an inbox sees only that inbox. */
async function resolveSubject(
  db: Db,
  scope: Scope,
  { inboxId = scope.inboxId, domain }: MetricFilter,
): Promise<MetricSubject | 'none'> {
  const name = domain && (toDomainKey(domain) ?? domain.toLowerCase());
  if (inboxId === undefined) return name === undefined ? { kind: 'environment' } : { kind: 'domain', name };
  const inbox = await findInboxIncludingDeleted(db, scope, inboxId);
  return name === undefined || inbox.domain === name ? { kind: 'inbox', id: inbox.id } : 'none';
}
