/** Values of a query; those that are undefined, null or empty are left out. */
export type Query = Record<string, string | number | boolean | null | undefined>;

/** A local path with a query. `path` may have a query and a fragment already. */
export function withQuery(path: string, query: Query): string {
  const [address = '', fragment] = path.split('#');
  const [pathname = '', existing = ''] = address.split('?');
  const params = new URLSearchParams(existing);
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== '') params.set(name, String(value));
  const text = params.toString();
  return (text === '' ? pathname : `${pathname}?${text}`) + (fragment === undefined ? '' : `#${fragment}`);
}
