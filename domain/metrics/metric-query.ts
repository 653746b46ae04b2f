import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import { COUNT_COLUMNS } from './metric-counts.ts';
import type { MetricRange } from './metric-range.ts';

/** SQL, joined to `inboxes` as `subjects (subject)`: one row for each subject that includes the inbox's messages. */
export const INBOX_SUBJECTS = `lateral (values (''), (inboxes.id), (inboxes.domain))`;

/** The subject whose messages are counted. */
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

/**
 * Sums hours and pending deltas in one statement, so that each change is seen exactly once. Both parts are index range
 * scans, independent of the volume of other tenants.
 */
export function buildMetricQuery(
  db: Db,
  { environmentId, subject, range: { start, end }, granularity }: MetricQuery,
) {
  const hours = db
    .selectFrom('metric_hours')
    .select(['hour', ...COUNT_COLUMNS])
    .where('env_id', '=', environmentId)
    .where('hour', '>=', start)
    .where('hour', '<', end)
    .where('subject', '=', toSubjectKey(subject));
  const deltas = db
    .selectFrom('metric_deltas')
    .select(['hour', ...COUNT_COLUMNS])
    .where('env_id', '=', environmentId)
    .where('hour', '>=', start)
    .where('hour', '<', end);
  const inboxesOf = (domain: string) =>
    db.selectFrom('inboxes').select('id').where('env_id', '=', environmentId).where('domain', '=', domain);
  const ofSubject =
    subject.kind === 'environment'
      ? deltas
      : deltas.where('inbox_id', 'in', subject.kind === 'inbox' ? [subject.id] : inboxesOf(subject.name));
  return db
    .selectFrom(hours.unionAll(ofSubject).as('counted'))
    .select(COUNT_COLUMNS.map((name) => sql<number>`coalesce(sum(${sql.ref(name)}), 0)::int`.as(name)))
    .$if(granularity === 'hour', (query) => query.select('hour').groupBy('hour'));
}

function toSubjectKey(subject: MetricSubject): string {
  if (subject.kind === 'environment') return '';
  return subject.kind === 'inbox' ? subject.id : subject.name;
}
