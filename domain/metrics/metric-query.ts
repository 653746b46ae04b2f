import { raw, sql } from '@mikro-orm/core';
import type { Sql } from '../../platform/database/sql.ts';
import { COUNT_COLUMNS } from './metric-counts.ts';
import type { MetricRange } from './metric-range.ts';

/** SQL, joined to `inboxes`: one row for each subject that an inbox's messages count for. */
export const INBOX_SUBJECTS = `cross join lateral (values (''), (inboxes.id), (inboxes.domain)) subjects (subject)`;

/** What counts are recorded for. */
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

const sums = raw(COUNT_COLUMNS.map((name) => `coalesce(sum(${name}), 0)::int as ${name}`).join(', '));
const names = raw(COUNT_COLUMNS.join(', '));

/**
 * Sums hours and pending deltas in one statement, so that each change is seen exactly once. Both parts are index range
 * scans, independent of the volume of other tenants.
 */
export function buildMetricQuery({
  environmentId,
  subject,
  range: { start, end },
  granularity,
}: MetricQuery): Sql {
  const within = sql`env_id = ${environmentId} and hour >= ${start} and hour < ${end}`;
  const byHour = granularity === 'hour';
  return sql`select ${byHour ? sql`hour,` : sql``} ${sums} from (
      select hour, ${names} from metric_hours where ${within} and subject = ${toSubjectKey(subject)}
      union all
      select hour, ${names} from metric_deltas where ${within} and ${buildDeltaCondition(environmentId, subject)}
    ) counted ${byHour ? sql`group by hour` : sql``}`;
}

function toSubjectKey(subject: MetricSubject): string {
  if (subject.kind === 'environment') return '';
  return subject.kind === 'inbox' ? subject.id : subject.name;
}

function buildDeltaCondition(environmentId: string, subject: MetricSubject): Sql {
  if (subject.kind === 'environment') return sql`true`;
  if (subject.kind === 'inbox') return sql`inbox_id = ${subject.id}`;
  return sql`inbox_id in (select id from inboxes where env_id = ${environmentId} and domain = ${subject.name})`;
}
