import type { EntityManager } from '@mikro-orm/postgresql';
import { addressKey } from './address-key.ts';
import { type ListMatch, listVerdict } from './list-verdict.ts';
import { listedSql } from './recipient-standing.ts';

const LISTED = `select ${listedSql('receive', 'f.email')} as listed
  from inboxes i, (select ?::text as email) f where i.id = ?`;

/**
 * What the receive lists of an inbox, its environment and its organization say of a sender.
 *
 * @returns the entry that decides; null where none names the address.
 */
export async function receiveVerdict(
  em: EntityManager,
  inboxId: string,
  address: string,
): Promise<ListMatch | null> {
  const key = addressKey(address);
  if (key === null) return null;
  const [row] = await em.execute<{ listed: ListMatch[] | null }[]>(LISTED, [key, inboxId]);
  return listVerdict(row?.listed ?? []);
}
