import type { Db } from '../../platform/database/tables.ts';
import { recordPersonAudit } from '../audit/record-audit.ts';
import type { Client } from '../identity/person.ts';
import { requireSafeName } from '../identity/safe-name.ts';
import { createOrganization } from '../organizations/create-organization.ts';
import { findFreeSlug } from '../organizations/slug.ts';
import type { Tier } from '../organizations/tier.ts';
import { normalizeAccountAddress, voidSignUps } from '../people/account-address.ts';
import { createUser } from '../people/users.ts';
import { requireOn } from '../toggles/toggles.ts';
import type { OauthIdentity } from './oauth-client.ts';

const DEFAULT_ORGANIZATION = 'My organization';

/** The address for a new account; null if the provider proves no address that an account can have. */
export function provedAddress(
  { email, isEmailVerified }: OauthIdentity,
  ownDomains: readonly string[],
): string | null {
  if (email === null || !isEmailVerified) return null;
  return orNull(() => normalizeAccountAddress(email, '/email', ownDomains));
}

/**
 * Creates the account of a person who signs in for the first time, with an organization as a sign-up does, in the caller's
 * transaction. It creates no API key, because the answer of the API is a redirect, which shows nothing.
 *
 * @param email a {@link provedAddress} that no account has.
 * @throws AppError `switched_off`.
 */
export async function createOauthAccount(
  db: Db,
  { email, identity, tier, client }: { email: string; identity: OauthIdentity; tier: Tier; client: Client },
): Promise<string> {
  await requireOn(db, 'sign_up');
  // The address is proved, so sign-ups that others have begun with it are void.
  await voidSignUps(db, email);
  // Providers let people choose any name, and it appears in emails to others.
  const name = identity.name === null ? null : orNull(() => requireSafeName(identity.name ?? '', '/name'));
  const userId = await createUser(db, { email, name, passwordHash: null, emailVerifiedAt: new Date() });
  const organizationName =
    (name && orNull(() => requireSafeName(`${name}’s organization`, '/name'))) ?? DEFAULT_ORGANIZATION;
  await createOrganization(db, {
    name: organizationName,
    slug: await findFreeSlug(db, organizationName),
    tier,
    ownerId: userId,
  });
  await recordPersonAudit(db, { userId, ...client }, { action: 'organization.created' });
  return userId;
}

function orNull<T>(check: () => T): T | null {
  try {
    return check();
  } catch {
    return null;
  }
}
