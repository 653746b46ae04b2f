import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';

/** Claims an address for an inbox. Returns false if another inbox has it or it is reserved for another organization. */
export async function claimAddress(
  db: Db,
  { email, organizationId, inboxId }: { email: string; organizationId: string; inboxId: string },
): Promise<boolean> {
  const claim = await db
    .selectNoFrom(sql<boolean>`claim_address(${email}, ${organizationId}, ${inboxId})`.as('isClaimed'))
    .executeTakeFirst();
  return claim?.isClaimed === true;
}

/** Who tries again without a client_id finds their own inbox, and does not create a second one. */
export const addressTaken = (email: string): AppError =>
  new AppError('already_exists', {
    detail: `The address ${email} is taken.`,
    fix: `If it is yours, use its inbox: GET /api/v1/inboxes?email=${encodeURIComponent(email)}. Otherwise choose another address.`,
  });

/** Releases addresses of an inbox. They stay reserved for the organization for 90 days. */
export async function releaseAddresses(db: Db, inboxId: string, emails: readonly string[]): Promise<void> {
  await db
    .updateTable('address_claims')
    .set({ released_at: new Date() })
    .where('email', '=', anyOf(emails))
    .where('inbox_id', '=', inboxId)
    .execute();
}

/**
 * Ends the 90-day reservation of the addresses of deleted inboxes on a domain. The next organization that verifies the
 * domain can use them immediately.
 */
export async function releaseAddressesOfDomain(
  db: Db,
  { organizationId, domainName }: { organizationId: string; domainName: string },
): Promise<void> {
  await db
    .updateTable('address_claims')
    .set({ released_at: new Date(0) })
    .where('org_id', '=', organizationId)
    .where('email', 'like', `%@${domainName.replace(/[\\%_]/g, '\\$&')}`)
    .where('released_at', 'is not', null)
    .execute();
}

/**
 * Releases the addresses of a purged organization. Those on the shared domain stay reserved for 90 days, so that no other
 * organization receives mail that is meant for this one; those on its own domains are free for the next holder.
 */
export async function releaseAddressesOfOrganization(
  db: Db,
  organizationId: string,
  domainNames: readonly string[],
): Promise<void> {
  await db
    .updateTable('address_claims')
    .set({ released_at: sql`now()` })
    .where('org_id', '=', organizationId)
    .where('released_at', 'is', null)
    .execute();
  for (const domainName of domainNames) await releaseAddressesOfDomain(db, { organizationId, domainName });
}

const PURGE_BATCH_SIZE = 1_000;

/** Sweep: deletes the claims whose reservation has ended. Returns their number. */
export async function purgeReleasedAddresses({ db }: Pick<Database, 'db'>): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('address_claims')
    .where('email', 'in', (eb) =>
      eb
        .selectFrom('address_claims')
        .select('email')
        .where('released_at', '<', sql<Date>`now() - interval '90 days'`)
        .limit(PURGE_BATCH_SIZE),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}
