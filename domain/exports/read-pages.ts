import type { EntityManager } from '@mikro-orm/postgresql';
import { lowestIdAt } from '../../platform/ids.ts';
import type { ArchivePosition } from './archive-position.ts';
import {
  type ExportedTable,
  isoTime,
  type RangeSource,
  type RowSource,
  type Walk,
  type Within,
} from './exported-table.ts';

export type PagePosition = NonNullable<ArchivePosition['after']>;

/** Bytes of rows read at once, about. One row alone may be longer. Of larger pages Node collects the strings too late. */
const PAGE_BYTES = 256 * 1024;
/** Empty environments, or endpoints, passed in one transaction. */
const OUTERS_AT_ONCE = 50;

/**
 * The next page of a walk, in the transaction of one organization.
 *
 * @param startedAt rows made later are left out.
 * @returns null at the end; no keys where many outer rows have none.
 */
export async function nextKeys(
  em: EntityManager,
  walk: Walk,
  after: ArchivePosition['after'],
  startedAt: Date,
): Promise<{ keys: string[]; after: PagePosition } | null> {
  let place = after ?? (await nextOuter(em, walk, ''));
  for (let outers = 0; place && outers < OUTERS_AT_ONCE; outers += 1) {
    const keys = await keysAfter(em, walk, place, startedAt);
    const last = keys.at(-1);
    if (last !== undefined) return { keys, after: { outer: place.outer, key: last } };
    place = await nextOuter(em, walk, place.outer);
  }
  return place && { keys: [], after: place };
}

async function keysAfter(
  em: EntityManager,
  walk: Walk,
  place: PagePosition,
  startedAt: Date,
): Promise<string[]> {
  const { sql, values } = rangeOf(walk, place, boundOf(walk, startedAt));
  const rows = await em.execute<{ key: string; weight: number | string }[]>(
    `select "${walk.key}" as key, ${walk.weight ?? '0'} as weight from "${walk.table}"
     where ${sql} limit ${walk.pageSize}`,
    values,
  );
  return takeWeighing(rows, PAGE_BYTES);
}

/**
 * Within something, both columns are compared as rows: with an equality on the outer one the planner may take the
 * primary key for the order, and walk through the rows of everybody else.
 */
function rangeOf(
  { key, within, newestFirst = false }: Walk,
  place: PagePosition,
  bound: string | null,
): { sql: string; values: string[] } {
  if (!within)
    return {
      sql: `"${key}" > ? ${bound === null ? '' : `and "${key}" < ?`} order by "${key}"`,
      values: [place.key, ...(bound === null ? [] : [bound])],
    };
  const row = `("${within.column}", "${key}")`;
  const [from, to] = newestFirst ? ['', place.key || bound] : [place.key, bound];
  const direction = newestFirst ? 'desc' : 'asc';
  const end = to === null ? `"${within.column}" <= ?` : `${row} < (?, ?)`;
  return {
    sql: `${row} > (?, ?) and ${end} order by "${within.column}" ${direction}, "${key}" ${direction}`,
    values: [place.outer, from ?? '', place.outer, ...(to === null ? [] : [to])],
  };
}

/** Rows whose ids are not below it were made after the export began. */
function boundOf({ idKind }: Walk, startedAt: Date): string | null {
  return idKind && lowestIdAt(idKind, new Date(startedAt.getTime() + 1));
}

async function nextOuter(
  em: EntityManager,
  { within }: { within: Within | null },
  outer: string,
): Promise<PagePosition | null> {
  if (!within) return outer === '' ? { outer: 'whole', key: '' } : null;
  const [next] = await em.execute<{ id: string }[]>(
    `select id from "${within.table}" where id > ? order by id limit 1`,
    [outer],
  );
  return next ? { outer: next.id, key: '' } : null;
}

/** As many as weigh no more than `limit`, and at least one. */
export function takeWeighing(rows: { key: string; weight: number | string }[], limit: number): string[] {
  let sum = 0;
  const end = rows.findIndex(({ weight }, index) => {
    sum += Number(weight);
    return index > 0 && sum > limit;
  });
  return rows.slice(0, end === -1 ? rows.length : end).map(({ key }) => key);
}

export interface LinesWanted {
  table: ExportedTable;
  source: RowSource | RangeSource;
  after: ArchivePosition['after'];
  startedAt: Date;
  /** Of a column, as PostgreSQL has it. */
  typeOf: (column: string) => string;
}

interface Lines {
  lines: string[];
  after: PagePosition;
}

/**
 * The next rows as JSON texts; PostgreSQL writes them, so that no value is changed on its way.
 *
 * @returns null at the end of the source.
 */
export async function nextLines(em: EntityManager, wanted: LinesWanted): Promise<Lines | null> {
  const { source, after, startedAt } = wanted;
  if (!('walk' in source)) return nextOfRange(em, wanted, source);
  const page = await nextKeys(em, source.walk, after, startedAt);
  return page && { lines: await linesOf(em, wanted, source, page.keys), after: page.after };
}

async function linesOf(
  em: EntityManager,
  { table, typeOf, startedAt }: LinesWanted,
  source: RowSource,
  keys: string[],
): Promise<string[]> {
  if (keys.length === 0) return [];
  const bound = source.where.includes(':bound') ? [boundOf(source.walk, startedAt)] : [];
  const where = source.where.replace(':keys', keys.map(() => '?').join()).replace(':bound', '?');
  const rows = await em.execute<{ line: string }[]>(
    `select row_to_json(r)::text as line from (
       select ${selection(table, typeOf)} from "${table.table}" t where ${where} order by ${source.order}) r`,
    [...keys, ...bound],
  );
  return rows.map(({ line }) => line);
}

async function nextOfRange(
  em: EntityManager,
  wanted: LinesWanted,
  source: RangeSource,
): Promise<Lines | null> {
  let place = wanted.after ?? (await nextOuter(em, source, ''));
  for (let outers = 0; place && outers < OUTERS_AT_ONCE; outers += 1) {
    const rows = await em.execute<{ key: string; line: string }[]>(...rangeStatement(wanted, source, place));
    const last = rows.at(-1);
    if (last) return { lines: rows.map(({ line }) => line), after: { outer: place.outer, key: last.key } };
    place = await nextOuter(em, source, place.outer);
  }
  return place && { lines: [], after: place };
}

/** The key of the last row is its columns as a JSON array; empty at the beginning. */
export function rangeStatement(
  { table, typeOf }: Pick<LinesWanted, 'table' | 'typeOf'>,
  { key, next, pageSize }: RangeSource,
  place: PagePosition,
): [string, unknown[]] {
  const last = place.key === '' ? [] : (JSON.parse(place.key) as string[]);
  const behind = last.length === 0 ? 'true' : `(${key.join(', ')}) > (${last.map(() => '?').join(', ')})`;
  const values: unknown[] = [];
  const rows = next.replace(/:(outer|behind|limit)\b/g, (_mark, name: string) => {
    if (name === 'limit') return String(pageSize);
    values.push(...(name === 'outer' ? [place.outer] : last));
    return name === 'outer' ? '?' : behind;
  });
  const own = key.map((column) => `t."${column}"`).join(', ');
  return [
    `select json_build_array(${own})::text as key,
       (select row_to_json(r)::text from (select ${selection(table, typeOf)}) r) as line
     from (${rows}) t order by ${own}`,
    values,
  ];
}

function selection({ columns, derived = {} }: ExportedTable, typeOf: (column: string) => string): string {
  const plain = columns.map((column) => `${written(`t."${column}"`, typeOf(column))} as "${column}"`);
  const further = Object.entries(derived).map(([name, { sql }]) => `${sql} as "${name}"`);
  return [...plain, ...further].join(', ');
}

/** As the API writes it. */
function written(column: string, type: string): string {
  if (type.startsWith('timestamptz')) return isoTime(column);
  return type === 'bytea' ? `encode(${column}, 'hex')` : column;
}
