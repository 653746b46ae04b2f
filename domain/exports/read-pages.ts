import { raw, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Sql } from '../../platform/database/sql.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import type { ArchivePosition } from './archive-position.ts';
import {
  type ExportedTable,
  isoTime,
  type KeysetScan,
  type RangeSource,
  type RowSource,
} from './exported-table.ts';

export type PagePosition = NonNullable<ArchivePosition['after']>;

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
 * @param startedAt excludes rows created later.
 * @returns null at the end; no keys after many parents without rows.
 */
export async function readNextKeys(
  em: EntityManager,
  scan: KeysetScan,
  after: ArchivePosition['after'],
  startedAt: Date,
): Promise<{ keys: string[]; after: PagePosition } | null> {
  let position = after ?? (await findNextParent(em, scan, ''));
  for (let parents = 0; position && parents < MAX_EMPTY_PARENTS; parents += 1) {
    const keys = await readKeysAfter(em, scan, position, startedAt);
    const last = keys.at(-1);
    if (last !== undefined) return { keys, after: { parentId: position.parentId, key: last } };
    position = await findNextParent(em, scan, position.parentId);
  }
  return position && { keys: [], after: position };
}

async function readKeysAfter(
  em: EntityManager,
  scan: KeysetScan,
  position: PagePosition,
  startedAt: Date,
): Promise<string[]> {
  const range = buildKeyRange(scan, position, findUpperBound(scan, startedAt));
  const rows = await em.execute<{ key: string; weight: number | string }[]>(
    sql`select ${sql.ref(scan.key)} as key, ${raw(scan.weight ?? '0')} as weight from ${sql.ref(scan.table)}
     where ${range} limit ${scan.pageSize}`,
  );
  return takeUpToWeight(rows, PAGE_BYTES);
}

/**
 * With a parent, compares both columns as a row: with an equality on the parent column the planner may scan the primary
 * key instead, through all other tenants' rows.
 */
function buildKeyRange(
  { key, parent, newestFirst = false }: KeysetScan,
  position: PagePosition,
  bound: string | null,
): Sql {
  const id = sql.ref(key);
  if (!parent) {
    const belowBound = bound === null ? sql`true` : sql`${id} < ${bound}`;
    return sql`${id} > ${position.key} and ${belowBound} order by ${id}`;
  }
  const column = sql.ref(parent.column);
  const [from, to] = newestFirst ? ['', position.key || bound] : [position.key, bound];
  const direction = raw(newestFirst ? 'desc' : 'asc');
  const end =
    to === null
      ? sql`${column} <= ${position.parentId}`
      : sql`(${column}, ${id}) < (${position.parentId}, ${to})`;
  return sql`(${column}, ${id}) > (${position.parentId}, ${from ?? ''}) and ${end}
    order by ${column} ${direction}, ${id} ${direction}`;
}

/** Exclusive upper bound of the ids: rows at or above it were created after the export started. */
function findUpperBound({ idKind }: KeysetScan, startedAt: Date): string | null {
  return idKind && lowestIdAt(idKind, new Date(startedAt.getTime() + 1));
}

async function findNextParent(
  em: EntityManager,
  { parent }: Pick<KeysetScan, 'parent'>,
  parentId: string,
): Promise<PagePosition | null> {
  if (!parent) return parentId === '' ? { parentId: 'none', key: '' } : null;
  const [next] = await em.execute<{ id: string }[]>(
    sql`select id from ${sql.ref(parent.table)} where id > ${parentId} order by id limit 1`,
  );
  return next ? { parentId: next.id, key: '' } : null;
}

/** Returns the keys of the first rows whose total weight is within `limit`, at least one. */
function takeUpToWeight(rows: { key: string; weight: number | string }[], limit: number): string[] {
  let sum = 0;
  const end = rows.findIndex(({ weight }, index) => {
    sum += Number(weight);
    return index > 0 && sum > limit;
  });
  return rows.slice(0, end === -1 ? rows.length : end).map(({ key }) => key);
}

export interface LinesQuery {
  table: ExportedTable;
  source: RowSource | RangeSource;
  after: ArchivePosition['after'];
  startedAt: Date;
  /** PostgreSQL type of a column. */
  typeOf: (column: string) => string;
}

interface Lines {
  lines: string[];
  after: PagePosition;
}

/**
 * Reads the next rows as JSON. PostgreSQL serializes them, so that no value is converted on the way.
 *
 * @returns null at the end of the source.
 */
export async function readNextLines(em: EntityManager, query: LinesQuery): Promise<Lines | null> {
  const { source, after, startedAt } = query;
  if (!('scan' in source)) return readRangeLines(em, query, source);
  const page = await readNextKeys(em, source.scan, after, startedAt);
  return page && { lines: await readLines(em, query, source, page.keys), after: page.after };
}

async function readLines(
  em: EntityManager,
  { table, typeOf, startedAt }: LinesQuery,
  source: RowSource,
  keys: string[],
): Promise<string[]> {
  if (keys.length === 0) return [];
  const where = raw(source.where, { keys, bound: findUpperBound(source.scan, startedAt) });
  const rows = await em.execute<{ line: string }[]>(
    sql`select row_to_json(r)::text as line from (
       select ${raw(buildSelectList(table, typeOf))} from ${sql.ref(table.table)} t
       where ${where} order by ${raw(source.order)}) r`,
  );
  return rows.map(({ line }) => line);
}

async function readRangeLines(
  em: EntityManager,
  query: LinesQuery,
  source: RangeSource,
): Promise<Lines | null> {
  let position = query.after ?? (await findNextParent(em, source, ''));
  for (let parents = 0; position && parents < MAX_EMPTY_PARENTS; parents += 1) {
    const rows = await em.execute<{ key: string; line: string }[]>(buildRangeQuery(query, source, position));
    const last = rows.at(-1);
    if (last)
      return { lines: rows.map(({ line }) => line), after: { parentId: position.parentId, key: last.key } };
    position = await findNextParent(em, source, position.parentId);
  }
  return position && { lines: [], after: position };
}

/** `position.key` holds the key columns of the last row as a JSON array; empty at the beginning. */
export function buildRangeQuery(
  { table, typeOf }: Pick<LinesQuery, 'table' | 'typeOf'>,
  { key, next, pageSize }: RangeSource,
  position: PagePosition,
): Sql {
  const last = position.key === '' ? [] : (JSON.parse(position.key) as string[]);
  const after = last.length === 0 ? sql`true` : sql`(${raw(key.join(', '))}) > (${last})`;
  const rows = raw(next, { parent: position.parentId, after, limit: pageSize });
  const keyColumns = raw(key.map((column) => `t."${column}"`).join(', '));
  return sql`select json_build_array(${keyColumns})::text as key,
      (select row_to_json(r)::text from (select ${raw(buildSelectList(table, typeOf))}) r) as line
    from (${rows}) t order by ${keyColumns}`;
}

function buildSelectList(
  { columns, derived = {} }: ExportedTable,
  typeOf: (column: string) => string,
): string {
  const plain = columns.map((column) => `${formatColumn(`t."${column}"`, typeOf(column))} as "${column}"`);
  const computed = Object.entries(derived).map(([name, { sql }]) => `${sql} as "${name}"`);
  return [...plain, ...computed].join(', ');
}

/** SQL: a column in the API's format. */
function formatColumn(column: string, type: string): string {
  if (type.startsWith('timestamptz')) return isoTime(column);
  return type === 'bytea' ? `encode(${column}, 'hex')` : column;
}
