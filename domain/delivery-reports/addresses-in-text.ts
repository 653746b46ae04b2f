/**
 * An address in running text. ASCII only, because in Japanese text an address is not surrounded by spaces. Repetitions
 * are bounded and matches cannot overlap, so a search takes linear time.
 */
export const ADDRESS_IN_TEXT =
  /(?<![\w.!#$%&*+/=?^`{|}~-])[\w+~-][\w.!#$%&'*+/=?^`{|}~-]{0,99}@(?:[a-z\d](?:[a-z\d]|[._-](?=[a-z\d_-])){0,252}|\[[\d.]{7,15}\])/gi;

const MAX_FIELD_CHARACTERS = 2_000;

/** Returns the first address in a field value: `Name <a@b>`, `rfc822;a@b`, `a@b`, `"quoted local"@b`; null if there is none. */
export function findAddress(value: string): string | null {
  const field = value.slice(0, MAX_FIELD_CHARACTERS);
  const bracketed = /<([^<>\s]{1,320})>/.exec(field)?.[1];
  if (bracketed?.includes('@')) return bracketed.replace(/^(?:smtp|mailto|rfc822)[:;]/i, '');
  return findAddresses(field)[0] ?? /"[^"\n]{1,64}"@[\w.-]{1,255}/.exec(field)?.[0] ?? null;
}

/** Returns all addresses in a text, including duplicates. */
export function findAddresses(text: string): string[] {
  return [...text.matchAll(ADDRESS_IN_TEXT)].map(([address]) => address);
}
