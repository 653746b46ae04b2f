import type { SecretBox } from '../../platform/crypto.ts';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { ConfigurationChange, NewConfiguration, StoredConfiguration } from './change-configuration.ts';
import type { SsoScope } from './sso-scope.ts';
import { clientSecretContext } from './sso-settings.ts';

/** Maximum for an organization, including drafts and disabled configurations. */
const MAX_CONFIGURATIONS = 20;

/** An empty draft. The caller stores it. */
export function newDraft(
  { organizationId }: SsoScope,
  { type, replacesId }: Pick<NewConfiguration, 'type' | 'replacesId'>,
): NewConfiguration {
  return {
    id: newId('ssoConfiguration'),
    organizationId,
    type,
    status: 'draft',
    name: '',
    version: 1,
    replacesId,
    serviceProviderId: null,
    providerId: null,
    replacedAt: null,
    domains: [],
    defaultRole: 'viewer',
    issuer: null,
    clientId: null,
    clientSecret: null,
    idpMetadataUrl: null,
    idpMetadataXml: null,
    allowIdpInitiated: false,
    keysReadAt: null,
    metadataFetchedAt: null,
    metadataDueAt: null,
    certificateExpiresAt: null,
    certificateWarnedDays: null,
    testedAt: null,
    activatedAt: null,
  };
}

/** Copies the settings that need a test to the configuration `to`. */
export function copyTested(
  from: NewConfiguration,
  to: Pick<NewConfiguration, 'id'>,
  secretBox: SecretBox,
): ConfigurationChange {
  const { issuer, clientId, clientSecret, idpMetadataUrl, idpMetadataXml } = from;
  const { metadataFetchedAt, metadataDueAt, certificateExpiresAt, certificateWarnedDays } = from;
  return {
    issuer,
    clientId,
    clientSecret:
      clientSecret === null
        ? null
        : secretBox.seal(
            secretBox.open(clientSecret, clientSecretContext(from.id)),
            clientSecretContext(to.id),
          ),
    idpMetadataUrl,
    idpMetadataXml,
    metadataFetchedAt,
    metadataDueAt,
    certificateExpiresAt,
    certificateWarnedDays,
  };
}

/** A draft with the settings of a configuration. Identity providers know both by the same addresses. */
export function copyConfiguration(
  scope: SsoScope,
  from: StoredConfiguration,
  { replacesId }: Pick<NewConfiguration, 'replacesId'>,
  secretBox: SecretBox,
): NewConfiguration {
  const draft = newDraft(scope, { type: from.type, replacesId });
  const { name, domains, defaultRole, allowIdpInitiated } = from;
  return {
    ...draft,
    ...{ name, domains, defaultRole, allowIdpInitiated },
    ...copyTested(from, draft, secretBox),
    serviceProviderId: from.serviceProviderId ?? from.id,
  };
}

export async function requireFew(db: Db, { organizationId }: SsoScope): Promise<void> {
  await lockKey(db, 'sso-configurations', organizationId);
  const found = await db
    .selectFrom('sso_configurations')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('org_id', '=', organizationId)
    .executeTakeFirst();
  if ((found?.count ?? 0) >= MAX_CONFIGURATIONS)
    throw new AppError('conflict', {
      detail: `An organization has at most ${MAX_CONFIGURATIONS} SSO configurations.`,
      fix: 'Delete one that is not used.',
    });
}
