/** The limit of common file systems, in UTF-16 code units. */
const MAX_CHARACTERS = 255;

/**
 * Control characters, line separators, and the embeddings, overrides and isolates of the bidirectional algorithm, which
 * make `gpj.exe` look like `exe.jpg`. Joiners and direction marks are safe: Persian, Hindi and Hebrew names need them.
 */
const UNSAFE = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/**
 * Makes an untrusted file name safe for saving (RFC 6266 section 4.3): the last segment of a path with `/` or `\\`,
 * without {@link UNSAFE} characters. Shortens a long name before its extension.
 *
 * @returns undefined if no usable name remains.
 */
export function sanitizeFileName(untrusted: string): string | undefined {
  const name = untrusted.toWellFormed().replace(UNSAFE, '').split(/[/\\]/).at(-1)?.trim() ?? '';
  if (name === '' || name === '.' || name === '..') return undefined;
  if (name.length <= MAX_CHARACTERS) return name;
  const extension = /\.[^.\s]{1,32}$/u.exec(name)?.[0] ?? '';
  const stem = name.slice(0, MAX_CHARACTERS - extension.length);
  // Truncation may have split a surrogate pair.
  return stem.replace(/[\ud800-\udbff]$/, '') + extension;
}

/** `UTF-8''…` without the `*` of RFC 2231, or as a web form sends it. */
const CHARSET_PREFIX = /^[\w.+-]{1,40}'[\w-]{0,20}'(?=.*%)/;

/**
 * Reads the file name of a part: `filename` (RFC 2183 section 2.3), else `name`, which older programs write. The parser
 * has already decoded RFC 2231 and encoded words; this function decodes the percent-encoding that some programs use.
 *
 * @param header fields of the part, with parsed parameters.
 * @returns an empty string if there is none.
 */
export function getFileName(headers: Map<string, unknown>): string {
  const filename = getParameter(headers.get('content-disposition'), 'filename');
  return decodePercent(filename || getParameter(headers.get('content-type'), 'name'));
}

function getParameter(field: unknown, name: string): string {
  const params = (field as { params?: Record<string, unknown> } | undefined)?.params;
  const value = params && Object.hasOwn(params, name) ? params[name] : undefined;
  return typeof value === 'string' ? value : '';
}

/** Decodes only if the result is not plain ASCII: `100%25.txt` may be the real name. */
function decodePercent(name: string): string {
  if (!name.includes('%')) return name;
  try {
    const decoded = decodeURIComponent(name.replace(CHARSET_PREFIX, ''));
    return CHARSET_PREFIX.test(name) || /[^\p{ASCII}]/u.test(decoded) ? decoded : name;
  } catch {
    return name;
  }
}
