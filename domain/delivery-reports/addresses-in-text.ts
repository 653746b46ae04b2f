/**
 * An address in running text, ASCII alone: Japanese prose stands against addresses without a space. Each repetition is
 * bounded and a match begins where no other could have, so a search takes time in proportion to the text.
 */
export const ADDRESS_IN_TEXT =
  /(?<![\w.!#$%&*+/=?^`{|}~-])[\w+~-][\w.!#$%&'*+/=?^`{|}~-]{0,99}@(?:[a-z\d](?:[a-z\d._-]{0,251}[a-z\d])?|\[[\d.]{7,15}\])/gi;

const MAX_FIELD_CHARACTERS = 2_000;

/** The first address in a field's value: `Name <a@b>`, `rfc822;a@b`, `a@b`, `"quoted local"@b`. Null where none is. */
export function findAddress(value: string): string | null {
  const field = value.slice(0, MAX_FIELD_CHARACTERS);
  const bracketed = /<([^<>\s]{1,320})>/.exec(field)?.[1];
  if (bracketed?.includes('@')) return bracketed.replace(/^(?:smtp|mailto|rfc822)[:;]/i, '');
  return findAddresses(field)[0] ?? /"[^"\n]{1,64}"@[\w.-]{1,255}/.exec(field)?.[0] ?? null;
}

/** Every address in a text, as often as it stands there. */
export function findAddresses(text: string): string[] {
  return [...text.matchAll(ADDRESS_IN_TEXT)].map(([address]) => address);
}
