import { COUNT_COLUMNS } from '../metrics/metric-counts.ts';
import { SUBJECTS_OF_INBOX } from '../metrics/metric-statement.ts';
import { HOUR_OF_DELTA, PERIOD_OF_DELTA } from '../usage/fold-deltas.ts';
import { type ExportedTable, isoTime, type RangeSource } from './exported-table.ts';

const PAGE = 2_000;

interface Counted {
  table: string;
  /** The columns a row is found by. */
  key: string[];
  counts: readonly string[];
  /** SQL: what is not folded into the table yet, with the same columns. */
  waiting: string;
  within: RangeSource['within'];
}

/**
 * Rows as they are once what waits is folded in: as the API tells. In one statement, so that a change is seen once,
 * whoever folds it meanwhile; only as many rows are read of the table as a page has.
 */
function counted({ table, key, counts, waiting, within }: Counted): RangeSource {
  const [names, added] = [key.join(', '), counts.join(', ')];
  const sums = counts.map((count) => `sum(${count})::bigint as ${count}`).join(', ');
  const mine = within ? `${within.column} = :outer` : 'true';
  return {
    within,
    key,
    next: `select ${names}, ${sums} from (
        (select ${names}, ${added} from ${table} where ${mine} and :behind order by ${names} limit :limit)
        union all
        (select ${names}, ${added} from (${waiting}) as waiting where ${mine} and :behind)) as both_of_them
      group by ${names} order by ${names} limit :limit`,
    pageSize: PAGE,
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
      counted({
        table: 'usage_counters',
        key: ['counter', 'period_start'],
        counts: ['amount'],
        waiting: `select counter, ${PERIOD_OF_DELTA} as period_start, amount from usage_deltas`,
        within: null,
      }),
    ],
  },
  {
    table: 'usage_hours',
    columns: ['counter', 'hour', 'amount'],
    sources: [
      counted({
        table: 'usage_hours',
        key: ['counter', 'hour'],
        counts: ['amount'],
        waiting: `select counter, ${HOUR_OF_DELTA} as hour, amount from usage_deltas`,
        within: null,
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
        within: null,
        key: ['at', 'id'],
        next: `select * from usage_events where :behind order by at, id limit :limit`,
        pageSize: PAGE,
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
      counted({
        table: 'metric_hours',
        key: ['env_id', 'subject', 'hour'],
        counts: COUNT_COLUMNS,
        // Of the values beside it PostgreSQL could not tell a collation.
        waiting: `select d.env_id, subject collate "C" as subject, d.hour, ${COUNT_COLUMNS.map((count) => `d.${count}`).join(', ')}
          from metric_deltas d join inboxes on inboxes.id = d.inbox_id ${SUBJECTS_OF_INBOX}`,
        within: { table: 'environments', column: 'env_id' },
      }),
    ],
  },
];
