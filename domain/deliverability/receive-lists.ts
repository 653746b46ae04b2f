import type { EntityManager } from '@mikro-orm/postgresql';
import { addressKey } from './address-key.ts';
import { findDecidingMatch, type ListMatch } from './list-match.ts';
import { listMatchesSql } from './recipient-restrictions.ts';

const RECEIVE_MATCHES = `select ${listMatchesSql('receive', 'f.email')} as listed
  from inboxes i, (select ?::text as email) f where i.id = ?`;

/**
 * What the receive lists of an inbox, its environment and its organization say of a sender.
 *
 * @returns the entry that decides; null where none names the address.
 */
export async function findReceiveListMatch(
  em: EntityManager,
  inboxId: string,
  address: string,
): Promise<ListMatch | null> {
  const key = addressKey(address);
  if (key === null) return null;
  const [row] = await em.execute<{ listed: ListMatch[] | null }[]>(RECEIVE_MATCHES, [key, inboxId]);
  return findDecidingMatch(row?.listed ?? []);
}
