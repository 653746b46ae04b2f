export const LIST_DIRECTIONS = ['send', 'receive'] as const;
export type ListDirection = (typeof LIST_DIRECTIONS)[number];
export const LIST_EFFECTS = ['allow', 'block'] as const;
export type ListEffect = (typeof LIST_EFFECTS)[number];
/** Narrowest first: the first scope with a matching entry applies. */
export const LIST_SCOPES = ['inbox', 'environment', 'organization'] as const;
export type ListScope = (typeof LIST_SCOPES)[number];

/** A list entry that matches an address: the address itself, its domain, or a parent domain. */
export interface ListMatch {
  entry: string;
  effect: ListEffect;
  scope: ListScope;
}

/**
 * Finds the entry that applies to an address. The narrowest scope takes precedence (inbox, environment, organization).
 * Within one scope, block takes precedence over allow, even if the allow entry is more specific. An allow entry only
 * overrides a block of a wider scope; it does not block unlisted addresses.
 *
 * @returns null if no entry matches.
 */
export function findDecidingMatch(matches: readonly ListMatch[]): ListMatch | null {
  for (const scope of LIST_SCOPES) {
    const inScope = matches.filter((match) => match.scope === scope);
    const deciding = inScope.find(({ effect }) => effect === 'block') ?? inScope[0];
    if (deciding) return deciding;
  }
  return null;
}
