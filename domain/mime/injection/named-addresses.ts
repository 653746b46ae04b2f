import { toAddressKey } from '../mail-address.ts';

export const MAX_NAMED_ADDRESSES = 200;
/** Together. No honest message needs more, and the time to read it is spent on every alarm. */
const MAX_SEARCHED_CHARACTERS = 2_000_000;
/** How a character is written in HTML, and in the target of a link. */
const WRITTEN_CHARACTER = /&#0{0,5}(\d{2,3});|&#x0{0,5}([\da-f]{2});|%([\da-f]{2})|&(commat|period);/gi;
const NAMED_CHARACTERS: Record<string, string> = { commat: '@', period: '.' };
/** Zero-width spaces, soft hyphens and other characters that no one sees. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu;
/** RFC 5321 section 4.5.3.1. */
const MAX_LOCAL_CHARACTERS = 64;
const MAX_DOMAIN_CHARACTERS = 253;
/** RFC 5322 section 3.2.3. */
const NOT_IN_LOCAL_PART = /[^\w.!#$%&'*+/=?^`{|}~-]/;
const DOMAIN_AT_START = /^[\p{L}\p{M}\p{N}.-]+/u;
/** What may be before an address in a text without being part of it: quotes, `to=`, Markdown. */
const UNLIKELY_IN_LOCAL_PART = /^.*[!#$%&'*/=?^`{|}~]|^[._+-]+/;
const MAX_SHORTER_DOMAINS = 8;

/**
 * Finds the email addresses in texts. Where characters that may be part of an address more likely belong to the text around it,
 * it finds the address with and without them. An address that is too much costs an approval; one that is missed, a leak.
 *
 * @returns address keys, without repetitions; null if there are more than 200, or the texts are too long.
 */
export function findNamedAddresses(texts: readonly string[]): string[] | null {
  if (texts.reduce((sum, { length }) => sum + length, 0) > MAX_SEARCHED_CHARACTERS) return null;
  const found = new Set<string>();
  for (const text of texts) {
    const parts = readCharacters(text).split('@');
    for (let index = 1; index < parts.length; index += 1) {
      const locals = listLocalParts(parts[index - 1] ?? '');
      const domains = locals.length === 0 ? [] : listDomains(parts[index] ?? '');
      for (const local of locals)
        for (const domain of domains) {
          const key = toAddressKey(`${local}@${domain}`);
          if (key !== null) found.add(key);
        }
      if (found.size > MAX_NAMED_ADDRESSES) return null;
    }
  }
  return [...found];
}

function readCharacters(text: string): string {
  return text
    .normalize('NFKC')
    .replace(INVISIBLE, '')
    .replace(WRITTEN_CHARACTER, (written, decimal, hex, percent, name: string | undefined) => {
      if (name !== undefined) return NAMED_CHARACTERS[name.toLowerCase()] ?? written;
      const code = decimal === undefined ? Number.parseInt(hex ?? percent, 16) : Number(decimal);
      return code > 0x20 && code < 0x7f ? String.fromCharCode(code) : written;
    });
}

/** Of `?to=*ada` also `ada`. */
function listLocalParts(before: string): string[] {
  const local = before.slice(-MAX_LOCAL_CHARACTERS).split(NOT_IN_LOCAL_PART).at(-1);
  return local ? [...new Set([local, withoutSurroundings(local)])] : [];
}

function withoutSurroundings(local: string): string {
  const rest = local.replace(UNLIKELY_IN_LOCAL_PART, '');
  return rest === local ? local : withoutSurroundings(rest);
}

/** Of `people.example.Thanks` also `people.example`, and of `people.exampleへ` too. */
function listDomains(after: string): string[] {
  const whole = DOMAIN_AT_START.exec(after.slice(0, MAX_DOMAIN_CHARACTERS))?.[0].replace(/[.-]+$/, '') ?? '';
  const ascii = /^[\w.-]*/.exec(whole)?.[0] ?? '';
  const start = whole.indexOf('.') + 1;
  const ends = [...whole.slice(start).matchAll(/[.-]/g)].slice(0, MAX_SHORTER_DOMAINS);
  return [...new Set([whole, ascii, ...ends.map(({ index }) => whole.slice(0, start + index))])];
}
