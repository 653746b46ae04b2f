import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { toAddressKey } from '../mime/address-key.ts';
import { findDecidingMatch, type ListMatch } from './list-match.ts';
import { listMatchesSql } from './recipient-restrictions.ts';

/**
 * Looks up a sender in the receive lists of an inbox, its environment and its organization.
 *
 * @returns the entry that applies; null if none matches.
 */
export async function findReceiveListMatch(
  em: EntityManager,
  inboxId: string,
  address: string,
): Promise<ListMatch | null> {
  const key = toAddressKey(address);
  if (key === null) return null;
  const [row] = await em.execute<{ matches: ListMatch[] | null }[]>(sql`
    select ${listMatchesSql('receive', sql`f.email`)} as matches
    from inboxes i, (select ${key}::text as email) f where i.id = ${inboxId}`);
  return findDecidingMatch(row?.matches ?? []);
}
