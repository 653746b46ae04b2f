/** Keyset pages: a page names the sort key of its last row, and the next one starts behind it. */
export type CursorKey = readonly string[];

export interface PageRequest {
  /** 1–100. */
  limit: number;
  order: 'asc' | 'desc';
  /** Sort key of the last row of the page before; empty for the first page. */
  after?: CursorKey;
}

export interface Page<T> {
  items: T[];
  /** Empty on the last page. */
  next: CursorKey | null;
}

/** @param rows one more than `limit`, where there are more. */
export function pageOf<T>(rows: T[], limit: number, keyOf: (row: T) => CursorKey): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? keyOf(last) : null };
}
