import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { SecretBox } from '../../platform/crypto.ts';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { type SsoConfiguration, SsoConfigurationEntity, type SsoRole } from './sso-configuration.entity.ts';
import { TESTED_FIELDS } from './sso-input.ts';
import { adoptProvider, type ProviderClaim } from './sso-providers.ts';
import type { SsoScope } from './sso-scope.ts';
import { clientSecretContext } from './sso-settings.ts';

/** At most this many, drafts and disabled ones included. */
const MAX_CONFIGURATIONS = 20;

export function auditConfiguration(
  em: EntityManager,
  scope: SsoScope,
  what: 'created' | 'updated' | 'refreshed' | 'discarded' | 'disabled' | 'activated' | 'deleted',
  resourceId: string,
  details: Record<string, unknown> = {},
): Promise<void> {
  return recordAudit(em, scope, {
    action: `sso_configuration.${what}`,
    resourceType: 'sso_configuration',
    resourceId,
    details: { ...details, ...scope.auditDetails },
  });
}

export function createDraft(
  em: EntityManager,
  { organizationId }: SsoScope,
  { type, replacesId }: Pick<SsoConfiguration, 'type' | 'replacesId'>,
): SsoConfiguration {
  const draft = em.create(SsoConfigurationEntity, {
    id: newId('ssoConfiguration'),
    organizationId,
    type,
    status: 'draft',
    name: '',
    replacesId,
    serviceProviderId: null,
    providerId: null,
    replacedAt: null,
    domains: [],
    defaultRole: 'viewer' satisfies SsoRole,
    issuer: null,
    clientId: null,
    clientSecret: null,
    idpMetadataUrl: null,
    idpMetadataXml: null,
    keysReadAt: null,
    metadataFetchedAt: null,
    metadataDueAt: null,
    certificateExpiresAt: null,
    certificateWarnedDays: null,
    testedAt: null,
    activatedAt: null,
  });
  em.persist(draft);
  return draft;
}

/** Fields that take effect at once, and in the pending changes, whose test reads them, too. */
const OTHER_FIELDS = ['name', 'domains', 'defaultRole', 'allowIdpInitiated'] as const;

function copyTested(from: SsoConfiguration, to: SsoConfiguration, secretBox: SecretBox): void {
  for (const field of TESTED_FIELDS)
    if (field !== 'clientSecret') Object.assign(to, { [field]: from[field] });
  to.clientSecret =
    from.clientSecret === null
      ? null
      : secretBox.seal(
          secretBox.open(from.clientSecret, clientSecretContext(from.id)),
          clientSecretContext(to.id),
        );
}

function copySettings(from: SsoConfiguration, to: SsoConfiguration, secretBox: SecretBox): void {
  for (const field of OTHER_FIELDS) Object.assign(to, { [field]: structuredClone(from[field]) });
  copyTested(from, to, secretBox);
}

export function findPending(
  em: EntityManager,
  { organizationId }: SsoScope,
  id: string,
): Promise<SsoConfiguration | null> {
  return em.findOne(
    SsoConfigurationEntity,
    { organizationId, replacesId: id },
    { populate: ['idpMetadataXml'] },
  );
}

/** The pending changes of an active configuration: those there are, or new ones that change nothing yet. */
export async function openPending(
  em: EntityManager,
  scope: SsoScope,
  active: SsoConfiguration,
  secretBox: SecretBox,
): Promise<SsoConfiguration> {
  const existing = await findPending(em, scope, active.id);
  if (existing) return existing;
  await requireFew(em, scope);
  const pending = createDraft(em, scope, { type: active.type, replacesId: active.id });
  pending.serviceProviderId = active.serviceProviderId ?? active.id;
  copySettings(active, pending, secretBox);
  return pending;
}

export async function discardPending(em: EntityManager, scope: SsoScope, id: string): Promise<boolean> {
  const discarded = await em.execute<object[]>(sql`
    delete from sso_configurations where org_id = ${scope.organizationId} and replaces_id = ${id} returning id`);
  return discarded.length > 0;
}

/**
 * Activates tested settings: a draft, or the pending changes of the active configuration, whose id stays. Where the identity provider
 * becomes another one, the former settings stay for linking alone. The caller has locked all configurations of the organization.
 */
export async function makeActive(
  em: EntityManager,
  scope: SsoScope,
  { configuration, pending, certificates }: Activation,
  secretBox: SecretBox,
): Promise<void> {
  const tested = pending ?? configuration;
  const providerId = await adoptProvider(em, claimOf(tested, certificates), configuration.providerId);
  const others = await em.find(SsoConfigurationEntity, {
    organizationId: scope.organizationId,
    status: 'active',
    id: { $ne: configuration.id },
  });
  for (const other of others) {
    disableConfiguration(other);
    other.replacedAt = other.providerId === providerId ? null : new Date();
    await discardPending(em, scope, other.id);
    await auditConfiguration(em, scope, 'disabled', other.id);
  }
  // The index allows one active configuration at a time.
  await em.flush();
  if (pending) {
    if (configuration.providerId !== null && configuration.providerId !== providerId)
      keepForLinking(em, scope, configuration, secretBox);
    copyTested(pending, configuration, secretBox);
    em.remove(pending);
  }
  configuration.status = 'active';
  configuration.version += 1;
  configuration.providerId = providerId;
  configuration.replacedAt = null;
  configuration.testedAt = tested.testedAt;
  configuration.activatedAt = new Date();
  await em.flush();
  // The active configuration knows every person that these know.
  await em.execute(sql`
    update sso_configurations set replaced_at = null
    where org_id = ${scope.organizationId} and provider_id = ${providerId} and replaced_at is not null`);
}

export interface Activation {
  configuration: SsoConfiguration;
  pending: SsoConfiguration | null;
  /** SAML: fingerprints of the tested metadata. */
  certificates: readonly string[];
}

export const claimOf = (
  { organizationId, type, issuer }: SsoConfiguration,
  certificates: readonly string[],
): ProviderClaim => ({ organizationId, type, issuer: issuer ?? '', certificates });

/** A copy with the addresses that the former identity provider knows. */
function keepForLinking(
  em: EntityManager,
  scope: SsoScope,
  former: SsoConfiguration,
  secretBox: SecretBox,
): void {
  const copy = createDraft(em, scope, { type: former.type, replacesId: null });
  copySettings(former, copy, secretBox);
  copy.status = 'disabled';
  copy.serviceProviderId = former.serviceProviderId ?? former.id;
  copy.providerId = former.providerId;
  copy.replacedAt = new Date();
  copy.activatedAt = former.activatedAt;
}

/** Its logins stop, also those that link, and it has to be tested again. */
export function disableConfiguration(configuration: SsoConfiguration): void {
  configuration.status = 'disabled';
  configuration.replacedAt = null;
  configuration.testedAt = null;
  configuration.version += 1;
}

export async function requireFew(em: EntityManager, { organizationId }: SsoScope): Promise<void> {
  await lockKey(em, 'sso-configurations', organizationId);
  const count = await em.count(SsoConfigurationEntity, { organizationId });
  if (count >= MAX_CONFIGURATIONS)
    throw new AppError('conflict', {
      detail: `An organization has at most ${MAX_CONFIGURATIONS} SSO configurations.`,
      fix: 'Delete one that is not used.',
    });
}
