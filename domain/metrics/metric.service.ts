import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import type { Scope } from '../identity/scope.ts';
import { findInboxOrDeleted } from '../inboxes/find-inbox.ts';
import { type Deliverability, judgeDeliverability } from './deliverability-score.ts';
import { addCounts, COUNT_COLUMNS, type MetricCounts, noCounts } from './metric-counts.ts';
import { type AskedRange, hoursOf, type MetricRange, readRange } from './metric-range.ts';

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

interface Question {
  filter: MetricFilter;
  range: MetricRange;
  by: 'hour' | 'range';
}

function count(database: Database, scope: Scope, question: Question): Promise<HourCounts[]> {
  return database.transaction(scope, async ({ em }) => {
    const subject = await subjectOf(em, scope, question.filter);
    return subject === 'nothing' ? [] : em.execute<HourCounts[]>(...statementOf(scope, subject, question));
  });
}

/** One of the three things counts are kept for. */
type Subject = { kind: 'environment' } | { kind: 'inbox'; id: string } | { kind: 'domain'; name: string };

/** A credential of one inbox sees the mail of that inbox, whatever it asks for. */
async function subjectOf(
  em: EntityManager,
  scope: Scope,
  { inboxId = scope.inboxId, domain }: MetricFilter,
): Promise<Subject | 'nothing'> {
  const name = domain?.toLowerCase();
  if (inboxId === undefined) return name === undefined ? { kind: 'environment' } : { kind: 'domain', name };
  const inbox = await findInboxOrDeleted(em, scope, inboxId);
  return name === undefined || inbox.domain === name ? { kind: 'inbox', id: inbox.id } : 'nothing';
}

const sums = COUNT_COLUMNS.map((name) => `coalesce(sum(${name}), 0)::int as ${name}`).join(', ');
const names = COUNT_COLUMNS.join(', ');

/**
 * What was folded, and what was not yet: together in one statement, so that it sees each change once. Both parts read a
 * range of one index; nothing depends on how much mail others have.
 */
function statementOf(
  { environmentId }: Scope,
  subject: Subject,
  { range: { start, end }, by }: Question,
): [string, unknown[]] {
  const within = 'env_id = ? and hour >= ? and hour < ?';
  const bounds = [environmentId, start, end];
  const delta = deltaCondition(environmentId, subject);
  return [
    `select ${by === 'hour' ? 'hour, ' : ''}${sums} from (
       select hour, ${names} from metric_hours where ${within} and subject = ?
       union all
       select hour, ${names} from metric_deltas where ${within} ${delta.sql}
     ) counted ${by === 'hour' ? 'group by hour' : ''}`,
    [...bounds, keyOf(subject), ...bounds, ...delta.values],
  ];
}

function keyOf(subject: Subject): string {
  if (subject.kind === 'environment') return '';
  return subject.kind === 'inbox' ? subject.id : subject.name;
}

function deltaCondition(environmentId: string, subject: Subject): { sql: string; values: unknown[] } {
  if (subject.kind === 'environment') return { sql: '', values: [] };
  if (subject.kind === 'inbox') return { sql: 'and inbox_id = ?', values: [subject.id] };
  return {
    sql: 'and inbox_id in (select id from inboxes where env_id = ? and domain = ?)',
    values: [environmentId, subject.name],
  };
}
