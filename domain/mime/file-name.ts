/** What common file systems take for one name; counted in UTF-16 units. */
const MAX_CHARACTERS = 255;

/**
 * Controls, line separators, and the embeddings, overrides and isolates of the bidirectional algorithm, which make
 * `gpj.exe` read `exe.jpg`. Joiners and direction marks stay: Persian, Hindi and Hebrew names need them.
 */
const UNSAFE = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/**
 * A stranger's name for a file, as it may be handed to whoever saves it (RFC 6266 section 4.3): the last part of a path
 * of either kind, without {@link UNSAFE} characters; a long one loses the end of its stem and keeps its extension.
 *
 * @returns undefined where nothing is left that names a file.
 */
export function sanitizeFileName(given: string): string | undefined {
  const name = given.toWellFormed().replace(UNSAFE, '').split(/[/\\]/).at(-1)?.trim() ?? '';
  if (name === '' || name === '.' || name === '..') return undefined;
  if (name.length <= MAX_CHARACTERS) return name;
  const extension = /\.[^.\s]{1,32}$/u.exec(name)?.[0] ?? '';
  const stem = name.slice(0, MAX_CHARACTERS - extension.length);
  // The cut may have gone through a surrogate pair.
  return stem.replace(/[\ud800-\udbff]$/, '') + extension;
}

/** `UTF-8''…` without the star that RFC 2231 demands, and names as a web form would send them. */
const CHARSET_PREFIX = /^[\w.+-]{1,40}'[\w-]{0,20}'(?=.*%)/;

/**
 * The name a part of a mail gives its file: `filename`, else `name` (RFC 2183 section 2.3; older programs write only
 * that). RFC 2231 and encoded words are decoded already; what some programs escape with `%` is decoded here.
 *
 * @param headers the part's, with parameters parsed. @returns empty where it gives none.
 */
export function getFileName(headers: Map<string, unknown>): string {
  const given = getParameter(headers.get('content-disposition'), 'filename');
  return decodePercent(given || getParameter(headers.get('content-type'), 'name'));
}

function getParameter(field: unknown, name: string): string {
  const params = (field as { params?: Record<string, unknown> } | undefined)?.params;
  const value = params && Object.hasOwn(params, name) ? params[name] : undefined;
  return typeof value === 'string' ? value : '';
}

/** Only where it reads as more than ASCII then: `100%25.txt` may be a name. */
function decodePercent(name: string): string {
  if (!name.includes('%')) return name;
  try {
    const decoded = decodeURIComponent(name.replace(CHARSET_PREFIX, ''));
    return CHARSET_PREFIX.test(name) || /[^\p{ASCII}]/u.test(decoded) ? decoded : name;
  } catch {
    return name;
  }
}
