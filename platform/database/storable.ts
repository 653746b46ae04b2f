/**
 * Makes external text storable: PostgreSQL rejects NUL in text and lone surrogates in JSON. Replaces both with U+FFFD, so
 * a message or response that contains one can be stored.
 *
 * @param maxCharacters longer text is truncated.
 */
export function storableText(text: string, maxCharacters = Number.POSITIVE_INFINITY): string {
  const truncated = text.length > maxCharacters ? text.slice(0, maxCharacters) : text;
  return truncated.replaceAll('\0', '\u{fffd}').toWellFormed();
}

/** {@link storableText} for every string within a JSON value, including property names. */
export function storableJson<T>(value: T): T {
  return JSON.parse(JSON.stringify(value), (_key, entry) => {
    if (typeof entry === 'string') return storableText(entry);
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return entry;
    return Object.fromEntries(Object.entries(entry).map(([name, member]) => [storableText(name), member]));
  });
}

const EARLIEST_MS = Date.parse('0001-01-01T00:00:00Z');
export const LATEST_STORABLE_MS = Date.parse('9999-12-31T23:59:59Z');

/**
 * Returns null for a time that cannot be stored: an invalid one, or one outside the years 1 to 9999, whose ISO form
 * PostgreSQL rejects.
 */
export function storableTime(milliseconds: number): Date | null {
  return milliseconds >= EARLIEST_MS && milliseconds <= LATEST_STORABLE_MS ? new Date(milliseconds) : null;
}
