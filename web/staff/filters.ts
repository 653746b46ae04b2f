type Filled<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** The filters of a form that were filled in: an empty field filters nothing. */
export function filled<T extends object>(filters: T): Filled<T> {
  return Object.fromEntries(
    Object.entries(filters).filter(([, value]) => value !== undefined && value !== ''),
  ) as Filled<T>;
}
