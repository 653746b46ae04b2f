import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import { toAddressKey } from '../mime/address-key.ts';
import { findDecidingMatch, type ListMatch } from './list-match.ts';
import { selectListMatches } from './recipient-restrictions.ts';

/**
 * Looks up a sender in the receive lists of an inbox, its environment and its organization.
 *
 * @returns the entry that applies; null if none matches.
 */
export async function findReceiveListMatch(
  db: Db,
  inboxId: string,
  address: string,
): Promise<ListMatch | null> {
  const key = toAddressKey(address);
  if (key === null) return null;
  const found = await db
    .selectFrom('inboxes as i')
    .select(selectListMatches('receive', sql`${key}::text`).as('matches'))
    .where('i.id', '=', inboxId)
    .executeTakeFirst();
  return findDecidingMatch(found?.matches ?? []);
}
