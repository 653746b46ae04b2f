import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { recordOrganizationAudit } from '../audit/record-audit.ts';
import type { Person } from '../identity/person.ts';
import { requireSafeName } from '../identity/safe-name.ts';
import { createOrganization } from '../organizations/create-organization.ts';
import { findFreeSlug } from '../organizations/slug.ts';
import type { Tier } from '../organizations/tier.ts';
import { requireOn } from '../toggles/toggles.ts';
import type { Membership } from './account.service.ts';

/** Each organization has the limits of its plan, so their number limits what one person gets without paying. */
const MAX_OWNED_ORGANIZATIONS = 10;

export type OwnOrganizationService = ReturnType<typeof createOwnOrganizationService>;

/** Organizations that a person creates beside the one of their sign-up. */
export function createOwnOrganizationService({ database, tier }: { database: Database; tier: Tier }) {
  return {
    /**
     * Creates an organization with its two environments. The person is its owner. It has no API key yet.
     *
     * @throws AppError `validation_error`; `switched_off`; `policy_violation` for a session from the single sign-on of an
     * organization, which could not enter the new one; `conflict` at the maximum.
     */
    create: (person: Person, input: { name: string }): Promise<Membership> => {
      if (person.method === 'sso') throw notEnterable();
      const name = requireSafeName(input.name, '/body/name');
      return database.peopleTransaction(async ({ db }) => {
        await requireOn(db, 'sign_up');
        await lockKey(db, 'own-organizations', person.userId);
        await requireFewOrganizations(db, person.userId);
        const slug = await findFreeSlug(db, name);
        const { organizationId } = await createOrganization(db, { name, slug, tier, ownerId: person.userId });
        await recordOrganizationAudit(db, person, {
          action: 'organization.created',
          organizationId,
          details: { name, slug },
        });
        return { organizationId, name, slug, role: 'owner', status: 'active', deletedAt: null };
      });
    },
  };
}

/** Closed organizations count until they are purged. */
async function requireFewOrganizations(db: Db, userId: string): Promise<void> {
  const owned = await db
    .selectFrom('members')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('user_id', '=', userId)
    .where('role', '=', 'owner')
    .executeTakeFirst();
  if ((owned?.count ?? 0) >= MAX_OWNED_ORGANIZATIONS)
    throw new AppError('conflict', {
      detail: `You own ${MAX_OWNED_ORGANIZATIONS} organizations, which is the maximum. A closed one counts for 30 days.`,
      fix: 'Use environments of an organization to separate work, or make another person the owner of one.',
    });
}

function notEnterable(): AppError {
  return new AppError('policy_violation', {
    detail: 'You signed in through the single sign-on of an organization, which opens no other organization.',
    fix: 'Sign in with your password, passkey or provider, and create the organization then.',
    extensions: { policy: 'sso_session' },
  });
}
