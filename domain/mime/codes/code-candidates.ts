/** What may be a code by its form, at a place of a line. */
export interface Candidate {
  start: number;
  end: number;
  /** As it is typed: digits without separators. */
  value: string;
  /** As it is written. */
  raw: string;
  /** Digits alone are clear enough in the middle of a sentence; letters are not. */
  isNumeric: boolean;
}

const SEPARATED_DIGITS = /[0-9]+(?:[ \u00a0\u2009\u202f.,:/–-][0-9]+)*/g;
const WORDS = /[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*/g;
const WORD_CHARACTER = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{N}_]/u;

const MIN_DIGITS = 4;
const MAX_DIGITS = 8;
/** `G-123456`: what stands before the hyphen is printed beside the input field. */
const FIXED_PREFIX = /(?<![A-Za-z0-9-])(?:G|FB|IG)-$/;

/** What stands directly before a number that is no code: a currency, a label, a country code, a masked account. */
const NOT_BEFORE =
  /(?:[$€£¥₹₩฿#+=@&\\(]|[*x•·]{3,}-?|(?:usd|eur|gbp|inr|rs\.?|kr\.?|chf)) ?$|(?:\border|invoice|ticket|case|tracking|ref(?:erence)?|booking|reservation|confirmation number|account|customer|client|member(?:ship)?|policy|flight|room|apt|suite|unit|box|zip|tel|phone|mobile|call|dial|text|fax|sku|item|model|serial|version|since|copyright|©|ending(?: in| with)?|last (?:four|4) digits(?: of)?|bestellung|bestellnummer|rechnung|kundennummer|commande|pedido|factura|facture|ordine|fattura|bestelling|factuur|zamówienie|заказ|тел|订单号?|注文番号|주문번호|in|by|until|before|from|of the year)(?: ?(?:no\.?|number|nr\.?|num\.?|id|#|:|：))* ?$/iu;
/** What stands directly after a number that is no code: a unit, a currency, a decimal. */
const NOT_AFTER =
  /^(?:[%°@=/\\_]|-[A-Za-z0-9]| ?(?:usd|eur|gbp|chf|inr|kr|zł|руб|px|kb|mb|gb|kg|km|mi|miles?|steps|points?|pts|people|users|customers|items?|orders?|words|characters|minutes?|mins?|hours?|hrs?|seconds?|days?|weeks?|months?|years?|minuten|stunden|tage|heures|jours|horas|días|uhr|am|pm|st(?:reet)?|ave(?:nue)?|road|rd)(?![\p{L}\p{N}])| ?[€£¥₹₩฿元円원年月日号])/iu;
/** `CA 94107` */
const STATE_BEFORE = /(?<![A-Za-z])[A-Z]{2},? $/;
const UNIT_WORD =
  /^\d{1,5}(?:am|pm|st|nd|rd|th|h|hrs?|mins?|s|sec|px|[kmg]b|kg|km|cm|mm|usd|eur|gbp|x|k|m|d|w|y|yrs?)$/i;
/** `sparo-ndigo-amurt-secan` */
const PASSPHRASE = /^[a-z]{4,6}(?:-[a-z]{4,6}){2,3}$/;
/** Words in capitals that stand beside codes, and are none. */
const COMMON_WORDS = new Set(
  'ACCESS ACCOUNT ACTION ALERT BELOW CLICK CODE CODES CONFIRM CONTINUE COPY DEAR EMAIL ENTER EXPIRES FALSE HELLO HERE HTML HTTPS IMPORTANT LOGIN MINUTES NEVER NOTE NOTICE PASSWORD PLEASE RESET SECURE SECURITY SHARE SIGN SIGNIN SUPPORT TEAM THANK THANKS TODAY TRUE URGENT VALID VERIFICATION VERIFY WARNING WELCOME YOUR'.split(
    ' ',
  ),
);

/**
 * Finds what may be a code: digits, digits in groups (`12 34 56`), letters and digits, and letters in capitals. Leaves
 * out what has the form of a price, a date, a telephone number, a colour, a year in a sentence or an address.
 *
 * @param line with ASCII digits, without URLs and addresses; at most some thousand characters.
 */
export function findCandidates(line: string): Candidate[] {
  return [...findNumbers(line), ...findWords(line)].sort((a, b) => a.start - b.start);
}

function findNumbers(line: string): Candidate[] {
  const found: Candidate[] = [];
  for (const { 0: run, index } of line.matchAll(SEPARATED_DIGITS)) {
    for (const [start, end] of splitRun(run)) {
      const candidate = toNumber(line, index + start, index + end);
      if (candidate) found.push(candidate);
    }
  }
  return found;
}

/** The whole run if its groups are equal, otherwise each number of a short run. @returns offsets. */
function splitRun(run: string): [number, number][] {
  const groups = run.split(/[^0-9]/);
  if (groups.length === 1) return [[0, run.length]];
  const separators = new Set(run.replace(/[0-9]/g, ''));
  const isUniform = separators.size === 1 && /[ \u00a0\u2009\u202f–-]/.test([...separators][0] ?? '');
  const isEqual = groups.every(({ length }) => length === groups[0]?.length);
  const digits = groups.join('').length;
  // Three pairs with hyphens are a date.
  const isDate = !/\s/.test(run) && groups.length === 3 && groups[0]?.length === 2;
  if (isUniform && isEqual && !isDate && digits >= MIN_DIGITS && digits <= MAX_DIGITS)
    return [[0, run.length]];
  const isSpaced = [...separators].every((separator) => /\s/.test(separator));
  if (!isSpaced || groups.length > 2 || digits > MAX_DIGITS) return [];
  const [first = ''] = groups;
  return [
    [0, first.length],
    [first.length + 1, run.length],
  ];
}

function toNumber(line: string, from: number, end: number): Candidate | null {
  const prefix = FIXED_PREFIX.exec(line.slice(Math.max(0, from - 4), from))?.[0] ?? '';
  const start = from - prefix.length;
  const value = line.slice(from, end).replace(/[^0-9]/g, '');
  if (value.length < MIN_DIGITS || value.length > MAX_DIGITS) return null;
  const before = line.slice(Math.max(0, start - 40), start);
  const after = line.slice(end, end + 20);
  if (isPartOfWord(before, after) || NOT_BEFORE.test(before) || NOT_AFTER.test(after)) return null;
  if (prefix === '' && /[A-Za-z0-9][-./]$/.test(before)) return null;
  if (value.length === 5 && STATE_BEFORE.test(before)) return null;
  return { start, end, value, raw: line.slice(start, end), isNumeric: true };
}

/** Letters of scripts without spaces may touch a code. */
function isPartOfWord(before: string, after: string): boolean {
  return WORD_CHARACTER.test(before.slice(-1)) || WORD_CHARACTER.test(after.slice(0, 1));
}

function findWords(line: string): Candidate[] {
  const found: Candidate[] = [];
  for (const { 0: raw, index: start } of line.matchAll(WORDS)) {
    const end = start + raw.length;
    const before = line.slice(Math.max(0, start - 40), start);
    if (!isCodeWord(raw) || isPartOfWord(before, line.slice(end, end + 1))) continue;
    if (NOT_BEFORE.test(before) || /[.@/\\]$/.test(before) || /^[@/\\=]|^\.\w/.test(line.slice(end, end + 2)))
      continue;
    found.push({ start, end, value: raw, raw, isNumeric: false });
  }
  return found;
}

function isCodeWord(word: string): boolean {
  if (PASSPHRASE.test(word)) return true;
  if (!/[A-Za-z]/.test(word) || word.length < 4 || word.length > 14) return false;
  const groups = word.split('-');
  const letters = word.replaceAll('-', '');
  const isUpper = word === word.toUpperCase();
  if (groups.length > 1)
    return (
      groups.length <= 3 &&
      groups.every(({ length }) => length >= 3 && length === groups[0]?.length) &&
      (isUpper || /\d/.test(word)) &&
      !groups.some((group) => COMMON_WORDS.has(group))
    );
  if (letters.length > 10 || UNIT_WORD.test(word)) return false;
  if (/\d/.test(word)) return isUpper || letters.length >= 5;
  return isUpper && letters.length >= 5 && letters.length <= 8 && !COMMON_WORDS.has(word);
}
