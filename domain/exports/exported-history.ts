import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { COUNT_COLUMNS } from '../metrics/metric-counts.ts';
import { INBOX_SUBJECTS } from '../metrics/metric-query.ts';
import { DELTA_HOUR, DELTA_PERIOD } from '../usage/apply-usage-deltas.ts';
import { type ExportedTable, isoTime, type RangeSource, type TableName } from './exported-table.ts';

const PAGE_SIZE = 2_000;

interface CountTable {
  table: TableName;
  /** Columns that identify a row. */
  key: string[];
  counts: readonly string[];
  /** The deltas that are not applied to the table yet, with the same columns. */
  pendingDeltas: RawBuilder<unknown>;
  parent: RangeSource['parent'];
}

/**
 * Rows with their pending deltas applied, as the API shows them. A single statement, so that a concurrent sweep cannot
 * make a delta count twice or not at all. Reads no more rows of the table than fit on a page.
 */
function withPendingDeltas({ table, key, counts, pendingDeltas, parent }: CountTable): RangeSource {
  const keys = sql.join(key.map((column) => sql.ref(column)));
  const columns = sql.join([...key, ...counts].map((column) => sql.ref(column)));
  const sums = sql.join(counts.map((count) => sql`sum(${sql.ref(count)})::bigint as ${sql.ref(count)}`));
  return {
    parent,
    key,
    next({ parentId, after, limit }) {
      const inParent = parent ? sql<SqlBool>`${sql.ref(parent.column)} = ${parentId}` : sql<SqlBool>`true`;
      return sql`select ${keys}, ${sums} from (
          (select ${columns} from ${sql.table(table)} where ${inParent} and ${after} order by ${keys} limit ${limit})
          union all
          (select ${columns} from (${pendingDeltas}) as pending where ${inParent} and ${after})) as combined
        group by ${keys} order by ${keys} limit ${limit}`;
    },
    pageSize: PAGE_SIZE,
  };
}

const METRIC_COUNTS = sql.join(COUNT_COLUMNS.map((count) => sql.ref(`d.${count}`)));

/**
 * Usage and metrics, which cannot be recomputed once messages are deleted. Written last, so that they are nearly as
 * recent as the end of the archive.
 */
export const EXPORTED_HISTORY: ExportedTable[] = [
  {
    table: 'usage_counters',
    columns: ['counter', 'period_start'],
    derived: { amount: { value: sql`greatest(0, t.amount)`, of: ['amount'] } },
    sources: [
      withPendingDeltas({
        table: 'usage_counters',
        key: ['counter', 'period_start'],
        counts: ['amount'],
        pendingDeltas: sql`select counter, ${sql.raw(DELTA_PERIOD)} as period_start, amount from usage_deltas`,
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
        pendingDeltas: sql`select counter, ${sql.raw(DELTA_HOUR)} as hour, amount from usage_deltas`,
        parent: null,
      }),
    ],
  },
  {
    table: 'usage_events',
    columns: ['id', 'counter', 'data', 'actor'],
    derived: {
      type: { value: sql`t.kind`, of: ['kind'] },
      created_at: { value: isoTime(sql`t.at`), of: ['at'] },
    },
    sources: [
      {
        parent: null,
        key: ['at', 'id'],
        next: ({ after, limit }) =>
          sql`select * from usage_events where ${after} order by at, id limit ${limit}`,
        pageSize: PAGE_SIZE,
      },
    ],
  },
  {
    table: 'metric_hours',
    columns: ['env_id', 'hour', ...COUNT_COLUMNS],
    derived: {
      inbox_id: { value: sql`case when starts_with(t.subject, 'inb_') then t.subject end`, of: ['subject'] },
      domain: {
        value: sql`case when not starts_with(t.subject, 'inb_') then nullif(t.subject, '') end`,
        of: [],
      },
    },
    sources: [
      withPendingDeltas({
        table: 'metric_hours',
        key: ['env_id', 'subject', 'hour'],
        counts: COUNT_COLUMNS,
        // Without an explicit collation PostgreSQL cannot derive one from the values list.
        pendingDeltas: sql`select d.env_id, subject collate "C" as subject, d.hour, ${METRIC_COUNTS}
          from metric_deltas d join inboxes on inboxes.id = d.inbox_id
          cross join ${sql.raw(INBOX_SUBJECTS)} subjects (subject)`,
        parent: { table: 'environments', column: 'env_id' },
      }),
    ],
  },
];
