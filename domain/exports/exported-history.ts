import { COUNT_COLUMNS } from '../metrics/metric-counts.ts';
import { INBOX_SUBJECTS } from '../metrics/metric-query.ts';
import { DELTA_HOUR, DELTA_PERIOD } from '../usage/apply-usage-deltas.ts';
import { type ExportedTable, isoTime, type RangeSource } from './exported-table.ts';

const PAGE_SIZE = 2_000;

interface CountTable {
  table: string;
  /** The columns a row is found by. */
  key: string[];
  counts: readonly string[];
  /** SQL: what is not folded into the table yet, with the same columns. */
  pendingDeltas: string;
  parent: RangeSource['parent'];
}

/**
 * Rows as they are once what waits is folded in: as the API tells. In one statement, so that a change is seen once,
 * whoever folds it meanwhile; only as many rows are read of the table as a page has.
 */
function withPendingDeltas({
  table,
  key,
  counts,
  pendingDeltas: waiting,
  parent: within,
}: CountTable): RangeSource {
  const [names, added] = [key.join(', '), counts.join(', ')];
  const sums = counts.map((count) => `sum(${count})::bigint as ${count}`).join(', ');
  const mine = within ? `${within.column} = :outer` : 'true';
  return {
    parent: within,
    key,
    next: `select ${names}, ${sums} from (
        (select ${names}, ${added} from ${table} where ${mine} and :behind order by ${names} limit :limit)
        union all
        (select ${names}, ${added} from (${waiting}) as waiting where ${mine} and :behind)) as both_of_them
      group by ${names} order by ${names} limit :limit`,
    pageSize: PAGE_SIZE,
  };
}

/**
 * What was counted: nothing else can tell it once mail was deleted. Comes last, so that it is as of the archive's end,
 * or a little before.
 */
export const EXPORTED_HISTORY: ExportedTable[] = [
  {
    table: 'usage_counters',
    columns: ['counter', 'period_start'],
    derived: { amount: { sql: 'greatest(0, t.amount)', of: ['amount'] } },
    sources: [
      withPendingDeltas({
        table: 'usage_counters',
        key: ['counter', 'period_start'],
        counts: ['amount'],
        pendingDeltas: `select counter, ${DELTA_PERIOD} as period_start, amount from usage_deltas`,
        parent: null,
      }),
    ],
  },
  {
    table: 'usage_hours',
    columns: ['counter', 'hour', 'amount'],
    sources: [
      withPendingDeltas({
        table: 'usage_hours',
        key: ['counter', 'hour'],
        counts: ['amount'],
        pendingDeltas: `select counter, ${DELTA_HOUR} as hour, amount from usage_deltas`,
        parent: null,
      }),
    ],
  },
  {
    table: 'usage_events',
    columns: ['id', 'counter', 'data', 'actor'],
    derived: {
      type: { sql: 't.kind', of: ['kind'] },
      created_at: { sql: isoTime('t.at'), of: ['at'] },
    },
    sources: [
      {
        parent: null,
        key: ['at', 'id'],
        next: `select * from usage_events where :behind order by at, id limit :limit`,
        pageSize: PAGE_SIZE,
      },
    ],
  },
  {
    table: 'metric_hours',
    columns: ['env_id', 'hour', ...COUNT_COLUMNS],
    derived: {
      inbox_id: { sql: `case when starts_with(t.subject, 'inb_') then t.subject end`, of: ['subject'] },
      domain: { sql: `case when not starts_with(t.subject, 'inb_') then nullif(t.subject, '') end`, of: [] },
    },
    sources: [
      withPendingDeltas({
        table: 'metric_hours',
        key: ['env_id', 'subject', 'hour'],
        counts: COUNT_COLUMNS,
        // Of the values beside it PostgreSQL could not tell a collation.
        pendingDeltas: `select d.env_id, subject collate "C" as subject, d.hour, ${COUNT_COLUMNS.map((count) => `d.${count}`).join(', ')}
          from metric_deltas d join inboxes on inboxes.id = d.inbox_id ${INBOX_SUBJECTS}`,
        parent: { table: 'environments', column: 'env_id' },
      }),
    ],
  },
];
