export const LIST_DIRECTIONS = ['send', 'receive'] as const;
export type ListDirection = (typeof LIST_DIRECTIONS)[number];
export const LIST_EFFECTS = ['allow', 'block'] as const;
export type ListEffect = (typeof LIST_EFFECTS)[number];
/** Narrowest first: the first scope that says something decides. */
export const LIST_SCOPES = ['inbox', 'environment', 'organization'] as const;
export type ListScope = (typeof LIST_SCOPES)[number];

/** An entry that names an address, or a domain above it. */
export interface ListMatch {
  entry: string;
  effect: ListEffect;
  scope: ListScope;
}

/**
 * What the lists say of an address: inbox over environment over organization, and within one scope a block over an
 * allow, whichever names the address more closely. An allow lifts a wider block and nothing else: whoever is on no list
 * is not refused because others are allowed.
 *
 * @returns the entry that decides; null where no list names the address.
 */
export function findDecidingMatch(matches: readonly ListMatch[]): ListMatch | null {
  for (const scope of LIST_SCOPES) {
    const said = matches.filter((match) => match.scope === scope);
    const decides = said.find(({ effect }) => effect === 'block') ?? said[0];
    if (decides) return decides;
  }
  return null;
}
