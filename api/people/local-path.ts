const MAX_CHARACTERS = 500;
/** Any origin: only whether a path stays on it counts. */
const BASE = 'https://service.invalid';

/**
 * Where a browser goes after signing in. Accepts only paths of this service's pages, so that a link cannot send people
 * to another site (CWE-601).
 *
 * @returns `fallback` for everything else, such as `//other.example`, `/\other.example` and `https:` URLs.
 */
export function localPath(path: unknown, fallback = '/account'): string {
  if (
    typeof path !== 'string' ||
    path.length > MAX_CHARACTERS ||
    !/^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(path)
  )
    return fallback;
  const url = URL.parse(path, BASE);
  if (url?.origin !== BASE || url.pathname.startsWith('//')) return fallback;
  return url.pathname.startsWith('/api/') ? fallback : `${url.pathname}${url.search}`;
}
