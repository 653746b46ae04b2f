import { COUNT_COLUMNS } from './metric-counts.ts';
import type { MetricRange } from './metric-range.ts';

/** SQL, joined to `inboxes`: one row for each subject that an inbox's messages count for. */
export const INBOX_SUBJECTS = `cross join lateral (values (''), (inboxes.id), (inboxes.domain)) subjects (subject)`;

/** What counts are kept for. */
export type MetricSubject =
  | { kind: 'environment' }
  | { kind: 'inbox'; id: string }
  | { kind: 'domain'; name: string };

export interface MetricQuery {
  environmentId: string;
  subject: MetricSubject;
  range: MetricRange;
  /** One row per hour in which something happened, or one row for the whole range. */
  granularity: 'hour' | 'range';
}

const sums = COUNT_COLUMNS.map((name) => `coalesce(sum(${name}), 0)::int as ${name}`).join(', ');
const names = COUNT_COLUMNS.join(', ');

/**
 * Sums hours and pending deltas in one statement, so that each change is seen exactly once. Both parts are index range
 * scans, independent of the volume of other tenants.
 */
export function buildMetricQuery({
  environmentId,
  subject,
  range: { start, end },
  granularity: by,
}: MetricQuery): [string, unknown[]] {
  const within = 'env_id = ? and hour >= ? and hour < ?';
  const bounds = [environmentId, start, end];
  const delta = buildDeltaCondition(environmentId, subject);
  return [
    `select ${by === 'hour' ? 'hour, ' : ''}${sums} from (
       select hour, ${names} from metric_hours where ${within} and subject = ?
       union all
       select hour, ${names} from metric_deltas where ${within} ${delta.sql}
     ) counted ${by === 'hour' ? 'group by hour' : ''}`,
    [...bounds, toSubjectKey(subject), ...bounds, ...delta.values],
  ];
}

function toSubjectKey(subject: MetricSubject): string {
  if (subject.kind === 'environment') return '';
  return subject.kind === 'inbox' ? subject.id : subject.name;
}

function buildDeltaCondition(
  environmentId: string,
  subject: MetricSubject,
): { sql: string; values: unknown[] } {
  if (subject.kind === 'environment') return { sql: '', values: [] };
  if (subject.kind === 'inbox') return { sql: 'and inbox_id = ?', values: [subject.id] };
  return {
    sql: 'and inbox_id in (select id from inboxes where env_id = ? and domain = ?)',
    values: [environmentId, subject.name],
  };
}
