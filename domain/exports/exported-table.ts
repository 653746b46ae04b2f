import type { IdKind } from '../../platform/ids.ts';

/** For tables without an index on the organization: rows are scanned per row of this table, by a column. */
export interface ParentTable {
  table: string;
  column: string;
}

/** How rows are read: in pages of a table, ordered by its key. */
export interface KeysetScan {
  table: string;
  key: string;
  /** Excludes rows created after the export started, by their id. Null for small tables that hardly grow. */
  idKind: IdKind | null;
  parent: ParentTable | null;
  /** Scans from the newest row to the oldest; needs a `parent` and an `idKind`. */
  newestFirst?: boolean;
  /** SQL: approximate bytes of a row and its children, to limit pages by size. Null: small. */
  weight: string | null;
  pageSize: number;
}

export interface RowSource {
  scan: KeysetScan;
  /** SQL condition: which rows `t` belong to the page with the keys `(:keys)`, all of them below `:bound`. */
  where: string;
  order: string;
}

/** Rows read in the order of several key columns, the prefix of an index. */
export interface RangeSource {
  parent: ParentTable | null;
  key: string[];
  /**
   * SQL that selects the next `:limit` rows in the order of the key. `:parent` is the parent's id, if there is a
   * parent; `:after` is a condition that the key is after the last row.
   */
  next: string;
  pageSize: number;
}

export interface ExportedTable {
  table: string;
  /** Name of its file in the archive if it differs from the table's; customers rely on it. */
  fileName?: string;
  /** Columns written under their own names. Times become ISO 8601, bytes hexadecimal. */
  columns: string[];
  /** Renamed or computed fields: SQL over the row `t`, and the columns they replace. */
  derived?: Record<string, { sql: string; of: string[] }>;
  /** Columns that are not exported, each with its reason. */
  omitted?: Record<string, string>;
  sources: (RowSource | RangeSource)[];
}

export const fileNameOf = ({ table, fileName = table }: ExportedTable): string => fileName;

/** SQL: a time in the API's format. */
export function isoTime(time: string): string {
  return `to_char(${time} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}
