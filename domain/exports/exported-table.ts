import type { IdKind } from '../../platform/ids.ts';

/** Where no index leads through all of the organization's rows at once: within each row of this table, by a column. */
export interface ParentTable {
  table: string;
  column: string;
}

/** In which order rows are met: pages of a table by its key. */
export interface KeysetScan {
  table: string;
  key: string;
  /** Rows made after the export began are left out by their id, so that it ends. Empty: there are few, and none follow. */
  idKind: IdKind | null;
  parent: ParentTable | null;
  /** From the newest row to the oldest; only within something, and with an `idKind`. */
  newestFirst?: boolean;
  /** SQL: about how many bytes a row and what hangs on it takes; a page has no more than a few of them. Empty: few. */
  weight: string | null;
  pageSize: number;
}

export interface RowSource {
  scan: KeysetScan;
  /** SQL: which rows `t` belong to the rows of a page, whose keys are `(:keys)`, all of them below `:bound`. */
  where: string;
  order: string;
}

/** Rows that are met by a key of several columns, those an index begins with. */
export interface RangeSource {
  parent: ParentTable | null;
  key: string[];
  /**
   * SQL of the next rows `t`, in the order of the key: those of `:outer` (where there is one) that are `:behind` the last
   * one, the key standing for itself there; `:limit` of them.
   */
  next: string;
  pageSize: number;
}

export interface ExportedTable {
  table: string;
  /** Of its file in the archive, which customers know; empty where it is the table's. */
  fileName?: string;
  /** Written under their own names. Times become ISO 8601, bytes hexadecimal. */
  columns: string[];
  /** Written under another name, or put together: SQL over the row `t`, with the columns it stands for. */
  derived?: Record<string, { sql: string; of: string[] }>;
  /** Columns that are not written, each with its reason. */
  omitted?: Record<string, string>;
  sources: (RowSource | RangeSource)[];
}

export const fileNameOf = ({ table, fileName = table }: ExportedTable): string => fileName;

/** SQL: a time as the API writes it. */
export function isoTime(time: string): string {
  return `to_char(${time} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}
