import { randomBytes } from 'node:crypto';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database } from '../../platform/database/database.ts';
import { createApiKey } from '../api-keys/create-api-key.ts';
import { createPasswordHashing } from '../identity/password.ts';
import { AGENT_PERMISSIONS, KEY_PERMISSIONS } from '../identity/permissions.ts';
import { createOrganization } from '../organizations/create-organization.ts';
import type { Tier } from '../organizations/tier.ts';
import { createUser } from '../people/users.ts';

export interface FirstOrganization {
  organizationId: string;
  productionEnvironmentId: string;
  sandboxEnvironmentId: string;
  ownerEmail: string;
  /** Shown once; only its hash is stored. */
  ownerPassword: string;
  /** Has every permission in every environment. Shown once. */
  apiKey: string;
  /** Has the permissions of an agent and is bound to `production`. Shown once. */
  agentKey: string;
}

export interface FirstOrganizationInput {
  organizationName: string;
  ownerEmail: string;
  /** Default: `enterprise`. */
  tier?: Tier;
}

/**
 * Creates the first organization of an installation with an owner, two environments and two API keys, in one
 * transaction. Concurrent processes create it only once.
 *
 * @param database connected as the worker role, which sees all organizations.
 * @returns null if an organization already exists.
 */
export async function createFirstOrganization(
  database: Database,
  input: FirstOrganizationInput,
): Promise<FirstOrganization | null> {
  const ownerPassword = randomBytes(18).toString('base64url');
  const passwordHash = await createPasswordHashing().hash(ownerPassword, null);
  return database.systemTransaction(async ({ db }) => {
    await lockKey(db, 'first-organization');
    if (await db.selectFrom('organizations').select('id').limit(1).executeTakeFirst()) return null;
    const ownerEmail = input.ownerEmail.toLowerCase();
    const created = await createOrganization(db, {
      name: input.organizationName,
      tier: input.tier ?? 'enterprise',
      ownerId: await createUser(db, { email: ownerEmail, passwordHash }),
    });
    const { organizationId, productionEnvironmentId } = created;
    const apiKey = await createApiKey(
      db,
      { organizationId, environmentId: null, name: 'First key', permissions: [...KEY_PERMISSIONS] },
      'live',
    );
    const agentKey = await createApiKey(
      db,
      {
        organizationId,
        environmentId: productionEnvironmentId,
        name: 'Agent',
        permissions: [...AGENT_PERMISSIONS],
      },
      'live',
    );
    return { ...created, ownerEmail, ownerPassword, apiKey: apiKey.token, agentKey: agentKey.token };
  });
}
