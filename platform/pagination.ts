/** Sort key of a row. In keyset pagination the next page starts after the last row's key. */
export type CursorKey = readonly string[];

export interface PageRequest {
  /** 1–100. */
  limit: number;
  order: 'asc' | 'desc';
  /** Sort key of the previous page's last row; undefined for the first page. */
  after?: CursorKey;
}

export interface Page<T> {
  items: T[];
  /** Key to continue after; null on the last page. */
  next: CursorKey | null;
}

/** @param rows up to `limit + 1` rows; the extra one shows that another page follows. */
export function toPage<T>(rows: T[], limit: number, keyOf: (row: T) => CursorKey): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? keyOf(last) : null };
}
