import type { EntityManager } from '@mikro-orm/postgresql';
import { addressKey } from './address-key.ts';
import { findDecidingMatch, type ListMatch } from './list-match.ts';
import { listMatchesSql } from './recipient-restrictions.ts';

const RECEIVE_MATCHES = `select ${listMatchesSql('receive', 'f.email')} as matches
  from inboxes i, (select ?::text as email) f where i.id = ?`;

/**
 * Looks up a sender in the receive lists of an inbox, its environment and its organization.
 *
 * @returns the entry that decides; null if none matches.
 */
export async function findReceiveListMatch(
  em: EntityManager,
  inboxId: string,
  address: string,
): Promise<ListMatch | null> {
  const key = addressKey(address);
  if (key === null) return null;
  const [row] = await em.execute<{ matches: ListMatch[] | null }[]>(RECEIVE_MATCHES, [key, inboxId]);
  return findDecidingMatch(row?.matches ?? []);
}
