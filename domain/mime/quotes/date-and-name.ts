const MAX_CHARACTERS = 120;
/** `Sun, 14 Jun 2026 16:45`, `2026年6月14日`, `14. 6. 2026 16:45 GMT+02:00`: few words, starting or ending with digits. */
const DATE = /(?<!\d)(?:19|20)\d\d(?!\d)|(?<!\d)\d{1,4}[./-]\s?\d{1,2}[./-]\s?\d{1,4}(?!\d)/;
const MAX_DATE_CHARACTERS = 60;
const MAX_DATE_WORDS = 9;
/** Words that are written around the date: `GMT`, `г. в`, `tarihinde`. */
const AFTER_DATE =
  /^(?:\s?(?:[ap]\.?m\.?|uhr|kl\.?|[A-Z]{3,4}|[年月日]|일|г\.|р\.))?[\s,\uff0c、:()[\]\u2013-]*(?:\p{Ll}{1,12} )?/iu;
/** Up to five words that start with a capital letter or are in a script without capitals. */
const NAME =
  /^["'“]?[\p{Lu}\p{Lo}][^\s:!?<>@;]{0,30}(?: (?:[\p{Lu}\p{Lo}][^\s:!?<>@;]{0,30}|(?:van|von|de|da|der|den|del|di|la|le|bin|ibn|zu)(?= ))){0,4}["'”]?$/u;

/**
 * Whether a line contains only a date and a name, in either order: `2026-06-14 Bob Smith`, `Am 14.06.2026, Bob Smith:`,
 * `* Bob Smith [14 Jun 2026]:`. People also write such lines, so quoted lines must follow.
 */
export function isDateAndName(line: string): boolean {
  if (line.length > MAX_CHARACTERS || /[?!@<>]/.test(line) || !DATE.test(line)) return false;
  const words = line.replace(/^[*[(\s"'“-]+/u, '').replace(/[\s:\uff1a)\]*_-]+$/u, '');
  return isDateThenName(words) || isNameThenDate(words);
}

function isDateThenName(words: string): boolean {
  const lastDigit = words.search(/\d(?!.*\d)/);
  const date = words.slice(0, lastDigit + 1);
  if (!isDate(date)) return false;
  const name = words.slice(lastDigit + 1).replace(AFTER_DATE, '');
  return NAME.test(name.trim());
}

function isNameThenDate(words: string): boolean {
  const separator = words.search(/[,([\uff0c]| [-\u2013] /);
  return separator > 1 && NAME.test(words.slice(0, separator).trim()) && isDate(words.slice(separator + 1));
}

function isDate(text: string): boolean {
  return (
    text.length <= MAX_DATE_CHARACTERS &&
    DATE.test(text) &&
    text.split(' ').length <= MAX_DATE_WORDS &&
    !/[\p{L}]{13}|\.\s\p{Lu}/u.test(text)
  );
}
