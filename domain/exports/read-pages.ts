import { type AliasedRawBuilder, type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import {
  type ExportedTable,
  isoTime,
  type KeysetScan,
  type ParentTable,
  type RangeSource,
  type RowSource,
  rowsOf,
} from './exported-table.ts';

/** The last row that was read from a source. */
export interface PagePosition {
  parentId: string;
  /** Empty before the first row of a parent. */
  key: string;
}

/**
 * Approximate bytes per page; a single row may be longer. Larger pages leave too many uncollected strings in
 * memory.
 */
const PAGE_BYTES = 256 * 1024;
/** Parents without rows skipped in one transaction. */
const MAX_EMPTY_PARENTS = 50;

/**
 * Reads the next page of a scan. Runs in a transaction scoped to one organization.
 *
 * @param after null at the beginning.
 * @param startedAt excludes rows created later.
 * @returns null at the end; no keys after many parents without rows.
 */
export async function readNextKeys(
  db: Db,
  scan: KeysetScan,
  after: PagePosition | null,
  startedAt: Date,
): Promise<{ keys: string[]; after: PagePosition } | null> {
  let position = after ?? (await findNextParent(db, scan.parent, ''));
  for (let parents = 0; position && parents < MAX_EMPTY_PARENTS; parents += 1) {
    const keys = await readKeysAfter(db, scan, position, startedAt);
    const last = keys.at(-1);
    if (last !== undefined) return { keys, after: { parentId: position.parentId, key: last } };
    position = await findNextParent(db, scan.parent, position.parentId);
  }
  return position && { keys: [], after: position };
}

async function readKeysAfter(
  db: Db,
  scan: KeysetScan,
  position: PagePosition,
  startedAt: Date,
): Promise<string[]> {
  const { table, parent, weight, pageSize, newestFirst = false } = scan;
  const direction = newestFirst ? 'desc' : 'asc';
  const key = sql.ref<string>(`t.${scan.key}`);
  const rows = await db
    .selectFrom(rowsOf(table))
    .select([key.as('key'), (weight ?? sql<number>`0`).as('weight')])
    .where(isInRange(scan, position, findUpperBound(scan, startedAt)))
    .$if(parent !== null, (query) => query.orderBy(sql.ref(`t.${parent?.column}`), direction))
    .orderBy(key, direction)
    .limit(pageSize)
    .execute();
  return takeUpToWeight(rows, PAGE_BYTES);
}

/**
 * With a parent, compares both columns as a row: with an equality on the parent column the planner may scan the primary
 * key instead, through all other tenants' rows.
 */
function isInRange(
  { key, parent, newestFirst = false }: KeysetScan,
  position: PagePosition,
  bound: string | null,
): RawBuilder<SqlBool> {
  const id = sql.ref(`t.${key}`);
  if (!parent)
    return bound === null ? sql`${id} > ${position.key}` : sql`${id} > ${position.key} and ${id} < ${bound}`;
  const column = sql.ref(`t.${parent.column}`);
  const [from, to] = newestFirst ? ['', position.key || bound] : [position.key, bound];
  const end =
    to === null
      ? sql`${column} <= ${position.parentId}`
      : sql`(${column}, ${id}) < (${position.parentId}, ${to})`;
  return sql`(${column}, ${id}) > (${position.parentId}, ${from}) and ${end}`;
}

/** Exclusive upper bound of the ids: rows at or above it were created after the export started. */
function findUpperBound({ idKind }: KeysetScan, startedAt: Date): string | null {
  return idKind && lowestIdAt(idKind, new Date(startedAt.getTime() + 1));
}

async function findNextParent(
  db: Db,
  parent: ParentTable | null,
  parentId: string,
): Promise<PagePosition | null> {
  if (!parent) return parentId === '' ? { parentId: 'none', key: '' } : null;
  const id = sql.ref<string>('t.id');
  const next = await db
    .selectFrom(rowsOf(parent.table))
    .select(id.as('id'))
    .where(id, '>', parentId)
    .orderBy(id)
    .limit(1)
    .executeTakeFirst();
  return next ? { parentId: next.id, key: '' } : null;
}

/** Returns the keys of the first rows whose total weight is within `limit`, at least one. */
function takeUpToWeight(rows: { key: string; weight: number }[], limit: number): string[] {
  let sum = 0;
  const end = rows.findIndex(({ weight }, index) => {
    sum += weight;
    return index > 0 && sum > limit;
  });
  return rows.slice(0, end === -1 ? rows.length : end).map(({ key }) => key);
}

export interface LinesQuery {
  table: ExportedTable;
  source: RowSource | RangeSource;
  after: PagePosition | null;
  startedAt: Date;
  /** PostgreSQL type of a column. */
  typeOf: (column: string) => string;
}

interface Lines {
  lines: string[];
  after: PagePosition;
}

/**
 * Reads the next rows as JSON. PostgreSQL serializes them, so no value is converted in this process.
 *
 * @returns null at the end of the source.
 */
export async function readNextLines(db: Db, query: LinesQuery): Promise<Lines | null> {
  const { source, after, startedAt } = query;
  if (!('scan' in source)) return readRangeLines(db, query, source);
  const page = await readNextKeys(db, source.scan, after, startedAt);
  return page && { lines: await readLines(db, query, source, page.keys), after: page.after };
}

async function readLines(
  db: Db,
  { table, typeOf, startedAt }: LinesQuery,
  source: RowSource,
  keys: string[],
): Promise<string[]> {
  if (keys.length === 0) return [];
  const order = sql.join(source.order.map((column) => sql.ref(`t.${column}`)));
  const selected = db
    .selectFrom(rowsOf(table.table))
    .select(fieldsOf(table, typeOf))
    .where(source.where(keys, findUpperBound(source.scan, startedAt)))
    .orderBy(order);
  const rows = await db
    .selectFrom(selected.as('r'))
    .select(sql<string>`row_to_json(r)::text`.as('line'))
    .execute();
  return rows.map(({ line }) => line);
}

async function readRangeLines(db: Db, query: LinesQuery, source: RangeSource): Promise<Lines | null> {
  let position = query.after ?? (await findNextParent(db, source.parent, ''));
  for (let parents = 0; position && parents < MAX_EMPTY_PARENTS; parents += 1) {
    const rows = await selectRange(db, query, source, position).execute();
    const last = rows.at(-1);
    if (last)
      return { lines: rows.map(({ line }) => line), after: { parentId: position.parentId, key: last.key } };
    position = await findNextParent(db, source.parent, position.parentId);
  }
  return position && { lines: [], after: position };
}

/** `position.key` holds the key columns of the last row as a JSON array; empty at the beginning. */
export function selectRange(
  db: Db,
  { table, typeOf }: Pick<LinesQuery, 'table' | 'typeOf'>,
  { key, next, pageSize }: RangeSource,
  { parentId, key: lastKey }: PagePosition,
) {
  const last = lastKey === '' ? [] : (JSON.parse(lastKey) as string[]);
  const columns = sql.join(key.map((column) => sql.ref(column)));
  const after = last.length === 0 ? sql<SqlBool>`true` : sql<SqlBool>`(${columns}) > (${sql.join(last)})`;
  const rows = next({ parentId, after, limit: pageSize });
  const fields = db.selectNoFrom(fieldsOf(table, typeOf)).as('r');
  return db
    .selectFrom(sql<Record<string, unknown>>`(${rows})`.as('t'))
    .select([
      sql<string>`json_build_array(${columns})::text`.as('key'),
      db.selectFrom(fields).select(sql<string>`row_to_json(r)::text`.as('line')).$asScalar().as('line'),
    ])
    .orderBy(columns);
}

/** The fields of a row `t` in the archive. */
function fieldsOf(
  { columns, derived = {} }: ExportedTable,
  typeOf: (column: string) => string,
): AliasedRawBuilder<unknown, string>[] {
  return [
    ...columns.map((column) => formatColumn(sql.ref(`t.${column}`), typeOf(column)).as(column)),
    ...Object.entries(derived).map(([name, { value }]) => value.as(name)),
  ];
}

/** A column in the API's format. */
function formatColumn(column: RawBuilder<unknown>, type: string): RawBuilder<unknown> {
  if (type === 'timestamp with time zone') return isoTime(column);
  return type === 'bytea' ? sql`encode(${column}, 'hex')` : column;
}
