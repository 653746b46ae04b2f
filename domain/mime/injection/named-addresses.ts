import { toAddressKey } from '../mail-address.ts';

export const MAX_NAMED_ADDRESSES = 200;
/** Together. No honest message needs more, and the time to read it is spent on every alarm. */
const MAX_SEARCHED_CHARACTERS = 2_000_000;
/** How the `@` is written in HTML and in the target of a link. */
const WRITTEN_AT = /%40|&#0{0,9}64;|&#x0{0,9}40;|&commat;/gi;
/** RFC 5321 section 4.5.3.1, and RFC 5322 atoms. */
const MAX_LOCAL_CHARACTERS = 64;
const NOT_IN_LOCAL_PART = /[^\w.!#$%&'*+/=?^`{|}~-]/;
const AFTER_AT = /^[\p{L}\p{M}\p{N}.-]{1,253}/u;
/** What may be before an address in a text without being part of it: quotes, `to=`, Markdown. */
const UNLIKELY_IN_LOCAL_PART = /^.*[!#$%&'*/=?^`{|}~]|^[._+-]+/;

/**
 * Finds the email addresses in texts. For each also the form without characters that are legal in an address, but more
 * likely belong to the text around it. An address that is too much costs an approval; one that is missed, a leak.
 *
 * @returns address keys, without repetitions; null if there are more than 200, or the texts are too long.
 */
export function findNamedAddresses(texts: readonly string[]): string[] | null {
  if (texts.reduce((sum, { length }) => sum + length, 0) > MAX_SEARCHED_CHARACTERS) return null;
  const found = new Set<string>();
  for (const text of texts) {
    const parts = text.normalize('NFKC').replace(WRITTEN_AT, '@').split('@');
    for (let index = 1; index < parts.length; index += 1) {
      const local = parts[index - 1]?.slice(-MAX_LOCAL_CHARACTERS).split(NOT_IN_LOCAL_PART).at(-1);
      const domain = AFTER_AT.exec((parts[index] ?? '').slice(0, 253))?.[0].replace(/[.-]+$/, '');
      if (!local || !domain) continue;
      for (const likely of [local, withoutSurroundings(local)]) {
        const key = toAddressKey(`${likely}@${domain}`);
        if (key !== null) found.add(key);
      }
      if (found.size > MAX_NAMED_ADDRESSES) return null;
    }
  }
  return [...found];
}

/** Of `to=*ada` it leaves `ada`. */
function withoutSurroundings(local: string): string {
  const rest = local.replace(UNLIKELY_IN_LOCAL_PART, '');
  return rest === local ? local : withoutSurroundings(rest);
}
