import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import type { Scope } from '../identity/scope.ts';
import { findInboxOrDeleted } from '../inboxes/find-inbox.ts';
import { type Deliverability, judgeDeliverability } from './deliverability-score.ts';
import { addCounts, type MetricCounts, noCounts } from './metric-counts.ts';
import { type AskedRange, hoursOf, type MetricRange, readRange } from './metric-range.ts';
import { type MetricSubject, metricStatement } from './metric-statement.ts';

/** Whose mail, and of which time. Without inbox and domain: all the credential may see of its environment. */
export interface MetricFilter extends AskedRange {
  inboxId?: string | undefined;
  /** Of the inboxes' addresses, in any case. */
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

/** What happened to mail, by the hour it happened in. Exact at once; a message that was deleted stays counted. */
export interface MetricService {
  /**
   * Each hour of the range, oldest first; one in which nothing happened with zeros.
   *
   * @throws AppError `not_found` where the inbox is out of reach; `unprocessable` for a range that is none, or longer
   * than {@link MAX_ACTIVITY_DAYS} days.
   */
  activity(scope: Scope, filter: MetricFilter): Promise<HourCounts[]>;
  /** @throws AppError as `activity`, the longest range being {@link MAX_SUMMARY_DAYS} days. */
  deliverability(scope: Scope, filter: MetricFilter): Promise<Deliverability>;
  /** @throws AppError as `deliverability`. */
  summary(scope: Scope, filter: MetricFilter): Promise<MetricCounts>;
  /** All three of the last 24 hours. */
  overview(scope: Scope): Promise<MetricsOverview>;
}

export const MAX_ACTIVITY_DAYS = 31;
export const MAX_SUMMARY_DAYS = 366;

export interface MetricServiceOptions {
  database: Database;
  now?: () => Date;
}

export function createMetricService({
  database,
  now = () => new Date(),
}: MetricServiceOptions): MetricService {
  async function hourly(scope: Scope, filter: MetricFilter): Promise<HourCounts[]> {
    const range = readRange(filter, now(), MAX_ACTIVITY_DAYS);
    const counted = await count(database, scope, { filter, range, by: 'hour' });
    const known = new Map(counted.map((row) => [new Date(row.hour).getTime(), row]));
    return hoursOf(range).map((hour) => ({ ...(known.get(hour.getTime()) ?? noCounts()), hour }));
  }
  async function total(scope: Scope, filter: MetricFilter): Promise<MetricCounts> {
    const range = readRange(filter, now(), MAX_SUMMARY_DAYS);
    const [counts] = await count(database, scope, { filter, range, by: 'range' });
    return counts ?? noCounts();
  }
  return {
    activity: hourly,
    deliverability: async (scope, filter) => judgeDeliverability(await total(scope, filter)),
    summary: total,
    async overview(scope) {
      const activity = await hourly(scope, {});
      const summary = activity.reduce<MetricCounts>(addCounts, noCounts());
      return { activity, deliverability: judgeDeliverability(summary), summary };
    },
  };
}

function count(
  database: Database,
  scope: Scope,
  { filter, ...asked }: { filter: MetricFilter; range: MetricRange; by: 'hour' | 'range' },
): Promise<HourCounts[]> {
  return database.transaction(scope, async ({ em }) => {
    const subject = await subjectOf(em, scope, filter);
    if (subject === 'nothing') return [];
    return em.execute<HourCounts[]>(
      ...metricStatement({ environmentId: scope.environmentId, subject, ...asked }),
    );
  });
}

/** A credential of one inbox sees the mail of that inbox, whatever it asks for. */
async function subjectOf(
  em: EntityManager,
  scope: Scope,
  { inboxId = scope.inboxId, domain }: MetricFilter,
): Promise<MetricSubject | 'nothing'> {
  const name = domain?.toLowerCase();
  if (inboxId === undefined) return name === undefined ? { kind: 'environment' } : { kind: 'domain', name };
  const inbox = await findInboxOrDeleted(em, scope, inboxId);
  return name === undefined || inbox.domain === name ? { kind: 'inbox', id: inbox.id } : 'nothing';
}
