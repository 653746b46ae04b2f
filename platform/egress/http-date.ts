const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec';

/** The form to write, and the two of old that have to be understood: RFC 850's and that of asctime. */
const FORMS = [
  /^\w{3}, (?<day>\d\d) (?<month>\w{3}) (?<year>\d{4}) (?<time>\d\d:\d\d:\d\d) GMT$/,
  /^\w{6,9}, (?<day>\d\d)-(?<month>\w{3})-(?<year>\d\d) (?<time>\d\d:\d\d:\d\d) GMT$/,
  /^\w{3} (?<month>\w{3}) (?<day>[ \d]\d) (?<time>\d\d:\d\d:\d\d) (?<year>\d{4})$/,
];

/**
 * HTTP-date (RFC 9110 section 5.6.7). Each form is in UTC, also that of asctime, which does not say so.
 *
 * @returns milliseconds since 1970; null for anything else.
 */
export function readHttpDate(value: string, now: Date = new Date()): number | null {
  const form = FORMS.map((pattern) => pattern.exec(value)?.groups).find((groups) => groups !== undefined);
  if (!form) return null;
  const { day = '', month = '', year = '', time = '' } = form;
  const index = MONTHS.indexOf(month);
  if (index < 0 || index % 3 !== 0) return null;
  const date = `${String(index / 3 + 1).padStart(2, '0')}-${day.replace(' ', '0')}`;
  const at = Date.parse(`${year.length === 2 ? centuryOf(year, now) : year}-${date}T${time}Z`);
  return Number.isNaN(at) ? null : at;
}

/** Two digits that seem more than 50 years ahead are of the past. */
function centuryOf(year: string, now: Date): string {
  const thisYear = now.getUTCFullYear();
  const full = Math.floor(thisYear / 100) * 100 + Number(year);
  return String(full > thisYear + 50 ? full - 100 : full);
}
