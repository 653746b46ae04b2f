import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { columnsWithin, type Scope } from '../identity/scope.ts';
import type { MetricRange } from './metric-range.ts';

export interface InboxActivity {
  inboxId: string;
  /** Messages that left and arrived in the range. */
  sent: number;
  received: number;
  /** The time of the newest message that is not hidden; null without messages. */
  lastMessageAt: Date | null;
}

/**
 * What happened in each inbox, in one statement: index range scans of the hours and of the threads of these inboxes, and of
 * the pending deltas of the environment.
 */
export function findInboxActivity(
  db: Db,
  scope: Scope,
  inboxIds: readonly string[],
  { start, end }: MetricRange,
): Promise<InboxActivity[]> {
  const { environmentId } = scope;
  const hours = db
    .selectFrom('metric_hours')
    .select(['subject as inbox_id', 'sent', 'received'])
    .where('env_id', '=', environmentId)
    .where('subject', '=', anyOf(inboxIds))
    .where('hour', '>=', start)
    .where('hour', '<', end);
  const deltas = db
    .selectFrom('metric_deltas')
    .select(['inbox_id', 'sent', 'received'])
    .where('env_id', '=', environmentId)
    .where('hour', '>=', start)
    .where('hour', '<', end)
    .where('inbox_id', '=', anyOf(inboxIds));
  const { inbox_id: boundTo, ...place } = columnsWithin(scope);
  return db
    .with('counted', (cte) =>
      cte
        .selectFrom(hours.unionAll(deltas).as('each'))
        .select([
          'inbox_id',
          sql<number>`sum(sent)::int`.as('sent'),
          sql<number>`sum(received)::int`.as('received'),
        ])
        .groupBy('inbox_id'),
    )
    .selectFrom('inboxes')
    .leftJoin('counted', 'counted.inbox_id', 'inboxes.id')
    .select([
      'inboxes.id as inboxId',
      sql<number>`coalesce(counted.sent, 0)`.as('sent'),
      sql<number>`coalesce(counted.received, 0)`.as('received'),
    ])
    .select((eb) =>
      eb
        .selectFrom('threads')
        .select('last_message_at')
        .whereRef('threads.inbox_id', '=', 'inboxes.id')
        .where('message_count', '>', 0)
        .where('merged_into_id', 'is', null)
        .orderBy('last_message_at', 'desc')
        .limit(1)
        .as('lastMessageAt'),
    )
    .where('inboxes.id', '=', anyOf(inboxIds))
    .where((eb) => eb.and(place))
    .$if(boundTo !== undefined, (query) => query.where('inboxes.id', '=', boundTo as string))
    .execute();
}
