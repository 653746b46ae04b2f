/** The three formats of RFC 9110 section 5.6.7. The asctime format has no zone; it is also in UTC. */
const HTTP_DATE_PATTERN = /^[A-Z][a-z]{2,8},? [\w -]+ \d\d:\d\d:\d\d (?:GMT|\d{4})$/;

/**
 * Parses an HTTP-date (RFC 9110 section 5.6.7).
 *
 * @returns milliseconds since 1970; null for anything else.
 */
export function parseHttpDate(value: string): number | null {
  if (!HTTP_DATE_PATTERN.test(value)) return null;
  const time = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`);
  return Number.isNaN(time) ? null : time;
}
