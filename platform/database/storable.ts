/**
 * Text from outside as PostgreSQL takes it: NUL is refused in text, a lone surrogate in JSON. Both are replaced by
 * U+FFFD, once, where the text comes in; otherwise a mail or an answer that carries one could never be recorded.
 *
 * @param maxCharacters what is longer is cut.
 */
export function storableText(text: string, maxCharacters = Number.POSITIVE_INFINITY): string {
  const cut = text.length > maxCharacters ? text.slice(0, maxCharacters) : text;
  return cut.replaceAll('\0', '\u{fffd}').toWellFormed();
}

/** The same for every string within a JSON value, names of members included. */
export function storableJson<T>(value: T): T {
  return JSON.parse(JSON.stringify(value), (_key, entry) => {
    if (typeof entry === 'string') return storableText(entry);
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return entry;
    return Object.fromEntries(Object.entries(entry).map(([name, member]) => [storableText(name), member]));
  });
}
