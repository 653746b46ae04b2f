import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Tables } from '../../platform/database/tables.ts';
import type { IdKind } from '../../platform/ids.ts';

export type TableName = keyof Tables & string;

/** For tables without an index on the organization: rows are scanned per row of this table, by a column. */
export interface ParentTable {
  table: TableName;
  column: string;
}

/** How rows are read: in pages of a table `t`, ordered by its key. */
export interface KeysetScan {
  table: TableName;
  key: string;
  /** Excludes rows created after the export started, by their id. Null for small tables that hardly grow. */
  idKind: IdKind | null;
  parent: ParentTable | null;
  /** Scans from the newest row to the oldest; needs a `parent` and an `idKind`. */
  newestFirst?: boolean;
  /** Approximate bytes of a row and its children, to limit pages by size. Null: small. */
  weight: RawBuilder<number> | null;
  pageSize: number;
}

export interface RowSource {
  scan: KeysetScan;
  /** Which rows `t` belong to the page with these keys, all of them below `bound`. */
  where(keys: string[], bound: string | null): RawBuilder<SqlBool>;
  /** Columns of `t`. */
  order: string[];
}

/** Rows read in the order of several key columns, the prefix of an index. */
export interface RangeSource {
  parent: ParentTable | null;
  key: string[];
  /** A query for the next `limit` rows of a parent in the order of the key. `after`: the key is after the last row. */
  next(page: { parentId: string; after: RawBuilder<SqlBool>; limit: number }): RawBuilder<unknown>;
  pageSize: number;
}

export interface ExportedTable {
  table: TableName;
  /** Name of its file in the archive if it differs from the table's; customers rely on it. */
  fileName?: string;
  /** Columns written under their own names. Times become ISO 8601, bytes hexadecimal. */
  columns: string[];
  /** Renamed or computed fields of the row `t`, and the columns they replace. */
  derived?: Record<string, { value: RawBuilder<unknown>; of: string[] }>;
  /** Columns that are not exported, each with its reason. */
  omitted?: Record<string, string>;
  sources: (RowSource | RangeSource)[];
}

export const fileNameOf = ({ table, fileName = table }: ExportedTable): string => fileName;

/** A time in the API's format. */
export const isoTime = (time: RawBuilder<unknown>): RawBuilder<string> =>
  sql`to_char(${time} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** The rows of a table as `t`, for statements whose table is one of a list. */
export const rowsOf = (table: TableName) => sql<Record<string, unknown>>`${sql.table(table)}`.as('t');
