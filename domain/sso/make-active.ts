import type { SecretBox } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import {
  auditConfiguration,
  type ConfigurationChange,
  changeConfiguration,
  discardPending,
  insertConfiguration,
  type StoredConfiguration,
} from './change-configuration.ts';
import { SsoConfigurationEntity } from './sso-configuration.entity.ts';
import { copyConfiguration, copyTested } from './sso-drafts.ts';
import { adoptProvider, type ProviderClaim } from './sso-providers.ts';
import type { SsoScope } from './sso-scope.ts';

export interface Activation {
  configuration: StoredConfiguration;
  pending: StoredConfiguration | undefined;
  /** SAML: fingerprints of the tested metadata. */
  certificates: readonly string[];
}

export const claimOf = (
  { organizationId, type, issuer }: StoredConfiguration,
  certificates: readonly string[],
): ProviderClaim => ({ organizationId, type, issuer: issuer ?? '', certificates });

/** Stops all logins of the configuration, including those that link. The configuration must be tested again. */
export const disabled = ({ version }: StoredConfiguration) =>
  ({
    status: 'disabled',
    replacedAt: null,
    testedAt: null,
    version: version + 1,
  }) satisfies ConfigurationChange;

/**
 * Activates tested settings: a draft, or the pending changes of the active configuration, whose id stays. If the identity
 * provider changes, the former settings stay for linking only. The caller has locked all configurations of the organization.
 *
 * @returns the active configuration.
 */
export async function makeActive(
  db: Db,
  scope: SsoScope,
  { configuration, pending, certificates }: Activation,
  secretBox: SecretBox,
): Promise<StoredConfiguration> {
  const tested = pending ?? configuration;
  const providerId = await adoptProvider(db, claimOf(tested, certificates), configuration.providerId);
  // The unique index allows only one active configuration at a time.
  for (const other of await findOtherActive(db, scope, configuration.id)) {
    const replacedAt = other.providerId === providerId ? null : new Date();
    await changeConfiguration(db, other, { ...disabled(other), replacedAt });
    await discardPending(db, scope, other.id);
    await auditConfiguration(db, scope, 'disabled', other.id);
  }
  if (pending) {
    if (configuration.providerId !== null && configuration.providerId !== providerId)
      await keepForLinking(db, scope, configuration, secretBox);
    await discardPending(db, scope, configuration.id);
  }
  const active = await changeConfiguration(db, configuration, {
    ...(pending && copyTested(pending, configuration, secretBox)),
    status: 'active',
    version: configuration.version + 1,
    providerId,
    replacedAt: null,
    testedAt: tested.testedAt,
    activatedAt: new Date(),
  });
  await endReplacement(db, scope, providerId);
  return active;
}

function findOtherActive(
  db: Db,
  { organizationId }: SsoScope,
  configurationId: string,
): Promise<StoredConfiguration[]> {
  return db
    .selectFrom('sso_configurations')
    .select(columnsOf(SsoConfigurationEntity, { lazy: ['idpMetadataXml'] }))
    .where('org_id', '=', organizationId)
    .where('status', '=', 'active')
    .where('id', '<>', configurationId)
    .execute();
}

/** Keeps a copy of the former settings. */
async function keepForLinking(
  db: Db,
  scope: SsoScope,
  former: StoredConfiguration,
  secretBox: SecretBox,
): Promise<void> {
  const { providerId, activatedAt } = former;
  await insertConfiguration(db, {
    ...copyConfiguration(scope, former, { replacesId: null }, secretBox),
    status: 'disabled',
    providerId,
    activatedAt,
    replacedAt: new Date(),
  });
}

/**
 * Ends the linking of configurations with the same identity provider, because the active configuration knows all their
 * people.
 */
async function endReplacement(db: Db, { organizationId }: SsoScope, providerId: string): Promise<void> {
  await db
    .updateTable('sso_configurations')
    .set({ replaced_at: null })
    .where('org_id', '=', organizationId)
    .where('provider_id', '=', providerId)
    .where('replaced_at', 'is not', null)
    .execute();
}
