import { randomBytes } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import { ApiKeyEntity } from '../api-keys/api-key.entity.ts';
import { createApiKeyToken, hashApiKeyToken } from '../api-keys/api-key-token.ts';
import { hashPassword } from '../identity/password.ts';
import { AGENT_PERMISSIONS, PERMISSIONS, type Permission } from '../identity/permissions.ts';
import { UserEntity } from '../identity/user.entity.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { MemberEntity } from '../organizations/member.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { Tier } from '../organizations/tier.ts';

export interface FirstOrganization {
  organizationId: string;
  productionEnvironmentId: string;
  sandboxEnvironmentId: string;
  ownerEmail: string;
  /** Shown once; only its hash is stored. */
  ownerPassword: string;
  /** Every permission, every environment. Shown once. */
  apiKey: string;
  /** What an agent gets, bound to `production`. Shown once. */
  agentKey: string;
}

export interface FirstOrganizationInput {
  organizationName: string;
  ownerEmail: string;
  /** `enterprise` where nobody says otherwise. */
  tier?: Tier;
}

/**
 * Makes the first organization of an installation, with an owner, two environments and two keys. All of it or nothing,
 * and once, also when two processes try at the same time.
 *
 * @param database of the workers' login, which sees whether there is any organization at all.
 * @returns null when one exists.
 */
export async function seedFirstOrganization(
  database: Database,
  input: FirstOrganizationInput,
): Promise<FirstOrganization | null> {
  const ownerPassword = randomBytes(18).toString('base64url');
  const passwordHash = await hashPassword(ownerPassword);
  return database.systemTransaction(async ({ em }) => {
    await em.execute(`select pg_advisory_xact_lock(hashtextextended('first organization', 0))`);
    if ((await em.count(OrganizationEntity, {})) > 0) return null;
    const organizationId = newId('organization');
    const ownerEmail = input.ownerEmail.toLowerCase();
    createOwnedOrganization(em, {
      organizationId,
      name: input.organizationName,
      tier: input.tier ?? 'enterprise',
      ownerEmail,
      passwordHash,
    });
    const productionEnvironmentId = createEnvironment(em, organizationId, 'production');
    const sandboxEnvironmentId = createEnvironment(em, organizationId, 'sandbox');
    const key = { organizationId, environmentId: null };
    return {
      organizationId,
      productionEnvironmentId,
      sandboxEnvironmentId,
      ownerEmail,
      ownerPassword,
      apiKey: createKey(em, { ...key, name: 'First key', permissions: [...PERMISSIONS] }),
      agentKey: createKey(em, {
        ...key,
        environmentId: productionEnvironmentId,
        name: 'Agent',
        permissions: [...AGENT_PERMISSIONS],
      }),
    };
  });
}

interface OwnedOrganization {
  organizationId: string;
  name: string;
  tier: Tier;
  ownerEmail: string;
  passwordHash: string;
}

function createOwnedOrganization(
  em: EntityManager,
  { organizationId, name, tier, ownerEmail, passwordHash }: OwnedOrganization,
): void {
  const slug = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  const userId = newId('user');
  em.persist([
    em.create(OrganizationEntity, { id: organizationId, name, slug: slug || 'organization', tier }),
    em.create(UserEntity, { id: userId, email: ownerEmail, name: null, passwordHash }),
    em.create(MemberEntity, { organizationId, userId, role: 'owner' }),
  ]);
}

function createEnvironment(
  em: EntityManager,
  organizationId: string,
  kind: 'production' | 'sandbox',
): string {
  const id = newId('environment');
  em.persist(em.create(EnvironmentEntity, { id, organizationId, name: kind, kind }));
  return id;
}

interface FirstKey {
  organizationId: string;
  environmentId: string | null;
  name: string;
  permissions: Permission[];
}

function createKey(em: EntityManager, key: FirstKey): string {
  const token = createApiKeyToken('live');
  em.persist(
    em.create(ApiKeyEntity, {
      ...key,
      id: newId('apiKey'),
      inboxId: null,
      tokenHash: hashApiKeyToken(token),
      lastFour: token.slice(-4),
      expiresAt: null,
      revokedAt: null,
      lastUsedAt: null,
    }),
  );
  return token;
}
