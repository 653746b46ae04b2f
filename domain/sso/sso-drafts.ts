import type { EntityManager } from '@mikro-orm/postgresql';
import type { SecretBox } from '../../platform/crypto.ts';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { type SsoConfiguration, SsoConfigurationEntity, type SsoRole } from './sso-configuration.entity.ts';
import type { SsoScope } from './sso-scope.ts';
import { clientSecretContext } from './sso-settings.ts';

/** At most this many, drafts and disabled ones included. */
const MAX_CONFIGURATIONS = 20;

export function auditConfiguration(
  em: EntityManager,
  scope: SsoScope,
  what: 'created' | 'updated' | 'disabled' | 'activated' | 'deleted',
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
    domains: [],
    defaultRole: 'viewer' satisfies SsoRole,
    issuer: null,
    clientId: null,
    clientSecret: null,
    idpMetadataUrl: null,
    idpMetadataXml: null,
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

/** What a draft takes over from the configuration it is to replace, and gives back when it is activated. */
function copySettings(from: SsoConfiguration, to: SsoConfiguration, secretBox: SecretBox): void {
  to.name = from.name;
  to.domains = [...from.domains];
  to.defaultRole = from.defaultRole;
  to.issuer = from.issuer;
  to.clientId = from.clientId;
  to.clientSecret =
    from.clientSecret === null
      ? null
      : secretBox.seal(
          secretBox.open(from.clientSecret, clientSecretContext(from.id)),
          clientSecretContext(to.id),
        );
  to.idpMetadataUrl = from.idpMetadataUrl;
  to.idpMetadataXml = from.idpMetadataXml;
  to.allowIdpInitiated = from.allowIdpInitiated;
  to.metadataFetchedAt = from.metadataFetchedAt;
  to.metadataDueAt = from.metadataDueAt;
  to.certificateExpiresAt = from.certificateExpiresAt;
  to.certificateWarnedDays = from.certificateWarnedDays;
}

export async function draftBeside(
  em: EntityManager,
  scope: SsoScope,
  active: SsoConfiguration,
  secretBox: SecretBox,
): Promise<SsoConfiguration> {
  const existing = await em.findOne(
    SsoConfigurationEntity,
    { organizationId: scope.organizationId, replacesId: active.id },
    { populate: ['idpMetadataXml'] },
  );
  if (existing) return existing;
  await requireFew(em, scope);
  const draft = createDraft(em, scope, { type: active.type, replacesId: active.id });
  copySettings(active, draft, secretBox);
  return draft;
}

/** The caller has locked all configurations of the organization. */
export async function makeActive(
  em: EntityManager,
  scope: SsoScope,
  tested: SsoConfiguration,
  secretBox: SecretBox,
): Promise<SsoConfiguration> {
  const others = await em.find(
    SsoConfigurationEntity,
    { organizationId: scope.organizationId, status: 'active' },
    { populate: ['idpMetadataXml'] },
  );
  for (const other of others)
    if (other.id !== tested.replacesId) {
      disableConfiguration(other);
      await auditConfiguration(em, scope, 'disabled', other.id);
    }
  // The index allows one active configuration at a time.
  await em.flush();
  const replaced =
    tested.replacesId === null
      ? undefined
      : await em.findOne(
          SsoConfigurationEntity,
          { organizationId: scope.organizationId, id: tested.replacesId },
          { populate: ['idpMetadataXml'] },
        );
  const active = replaced ?? tested;
  if (replaced) {
    copySettings(tested, replaced, secretBox);
    em.remove(tested);
    await em.flush();
  }
  active.status = 'active';
  active.version += 1;
  active.replacesId = null;
  active.testedAt = tested.testedAt;
  active.activatedAt = new Date();
  await em.flush();
  return active;
}

/** Its logins stop, and it has to be tested again. */
export function disableConfiguration(configuration: SsoConfiguration): void {
  configuration.status = 'disabled';
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
