import { COUNT_COLUMNS } from './metric-counts.ts';
import type { MetricRange } from './metric-range.ts';

/** SQL: what a change of an inbox's mail counts for, each a row of its own; joined to `inboxes`. */
export const SUBJECTS_OF_INBOX = `cross join lateral (values (''), (inboxes.id), (inboxes.domain)) subjects (subject)`;

/** One of the three things counts are kept for. */
export type MetricSubject =
  | { kind: 'environment' }
  | { kind: 'inbox'; id: string }
  | { kind: 'domain'; name: string };

export interface MetricQuestion {
  environmentId: string;
  subject: MetricSubject;
  range: MetricRange;
  /** A row for each hour in which something happened, or one for all of them. */
  by: 'hour' | 'range';
}

const sums = COUNT_COLUMNS.map((name) => `coalesce(sum(${name}), 0)::int as ${name}`).join(', ');
const names = COUNT_COLUMNS.join(', ');

/**
 * What was folded, and what was not yet: together in one statement, so that it sees each change once. Both parts read a
 * range of one index; nothing depends on how much mail others have.
 */
export function metricStatement({
  environmentId,
  subject,
  range: { start, end },
  by,
}: MetricQuestion): [string, unknown[]] {
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

function keyOf(subject: MetricSubject): string {
  if (subject.kind === 'environment') return '';
  return subject.kind === 'inbox' ? subject.id : subject.name;
}

function deltaCondition(environmentId: string, subject: MetricSubject): { sql: string; values: unknown[] } {
  if (subject.kind === 'environment') return { sql: '', values: [] };
  if (subject.kind === 'inbox') return { sql: 'and inbox_id = ?', values: [subject.id] };
  return {
    sql: 'and inbox_id in (select id from inboxes where env_id = ? and domain = ?)',
    values: [environmentId, subject.name],
  };
}
