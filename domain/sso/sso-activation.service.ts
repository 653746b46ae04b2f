import type { SecretBox } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { requireOrganizationWide } from '../identity/scope.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { OwnerNotices } from '../people/owner-notices.ts';
import { findPolicies } from '../policies/find-policies.ts';
import { endSessionsOfSso } from '../sessions/session.service.ts';
import {
  auditConfiguration,
  changeConfiguration,
  discardPending,
  lockConfiguration,
  lockPending,
  requireVerified,
  type StoredConfiguration,
} from './change-configuration.ts';
import { claimOf, disabled, makeActive } from './make-active.ts';
import { fingerprintOf } from './saml/idp-metadata.ts';
import { type SsoConfigurationView, viewConfiguration } from './sso-configuration-views.ts';
import type { SsoInputOptions } from './sso-input.ts';
import { findProvider, isOwnersProvider } from './sso-providers.ts';
import type { SsoScope } from './sso-scope.ts';

export interface SsoActivationOptions extends Pick<SsoInputOptions, 'parseMetadata'> {
  database: Database;
  secretBox: SecretBox;
  notifications: NotificationService;
  ownerNotices: Pick<OwnerNotices, 'ssoStopped'>;
}

export type SsoActivationService = ReturnType<typeof createSsoActivationService>;

/** Decides which configuration people sign in through. */
export function createSsoActivationService(options: SsoActivationOptions) {
  const { database, secretBox, notifications, ownerNotices } = options;
  return {
    /**
     * Activates a tested configuration, or the tested pending changes of the active one. Any other active configuration is
     * disabled; if another identity provider takes its place, it stays usable for linking.
     *
     * @throws AppError `conflict` if no test has passed since the last change; `domain_not_verified`.
     */
    activate: (scope: SsoScope, configurationId: string): Promise<SsoConfigurationView> =>
      database.transaction(scope, async (transaction) => {
        requireOrganizationWide(scope);
        const { db } = transaction;
        await lockAll(db, scope);
        const configuration = await lockConfiguration(db, scope, configurationId);
        const pending = await lockPending(db, scope, configuration.id);
        if (configuration.status === 'active' && !pending)
          return viewConfiguration(db, scope, configuration.id);
        const tested = pending ?? configuration;
        if (tested.status !== 'tested' || tested.testedAt === null) throw notTested(configurationId);
        const certificates = readCertificates(options, tested);
        const provider = await findProvider(db, claimOf(tested, certificates), configuration.providerId);
        await requireOwnerIfOwnersAreLinked(db, scope, provider);
        await requireVerified(db, scope, configuration.domains);
        const active = await makeActive(db, scope, { configuration, pending, certificates }, secretBox);
        await auditConfiguration(db, scope, 'activated', active.id, {
          domains: active.domains,
          issuer: active.issuer,
        });
        // Control of the identity provider is control of who gets in.
        await notifications.notifyOwners(transaction, {
          organizationId: scope.organizationId,
          template: 'sso-activated',
          params: {
            organizationId: scope.organizationId,
            configurationId: active.id,
            name: active.name,
            issuer: active.issuer ?? '',
            at: formatUtc(new Date()),
            ip: scope.ip ?? '',
          },
          dedupeKey: `sso-activated/${active.id}/${active.version}`,
        });
        return viewConfiguration(db, scope, active.id);
      }),

    /**
     * Stops logins through the active configuration, or linking through a replaced one.
     *
     * @throws AppError `conflict` while SSO is enforced.
     */
    disable: (scope: SsoScope, configurationId: string): Promise<SsoConfigurationView> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        requireOrganizationWide(scope);
        const found = await lockConfiguration(db, scope, configurationId);
        const wasActive = found.status === 'active';
        if (!wasActive && found.replacedAt === null) throw notActive();
        if (wasActive) await requireNotEnforced(db, scope);
        await changeConfiguration(db, found, disabled(found));
        await discardPending(db, scope, found.id);
        await auditConfiguration(db, scope, 'disabled', found.id);
        const { id, name } = found;
        if (wasActive)
          await ownerNotices.ssoStopped(transaction, scope, {
            configurationId: id,
            name,
            change: 'disabled',
          });
        return viewConfiguration(db, scope, id);
      }),

    /**
     * Deletes a configuration, and ends the sessions that it started. A later configuration with the same identity provider
     * recognizes its people.
     *
     * @throws AppError `conflict`.
     */
    remove: (scope: SsoScope, configurationId: string): Promise<void> =>
      // Sessions belong to people, so the deletion runs in the role that sees sessions.
      database.peopleTransaction(async (transaction) => {
        const { db } = transaction;
        requireOrganizationWide(scope);
        const found = await lockConfiguration(db, scope, configurationId);
        if (found.status === 'active') await requireNotEnforced(db, scope);
        const { id, name } = found;
        await db
          .deleteFrom('sso_configurations')
          .where('org_id', '=', scope.organizationId)
          .where((eb) => eb.or([eb('id', '=', id), eb('replaces_id', '=', id)]))
          .execute();
        await endSessionsOfSso(db, id);
        await auditConfiguration(db, scope, 'deleted', id);
        // No person has signed in through a draft.
        if (found.activatedAt !== null)
          await ownerNotices.ssoStopped(transaction, scope, { configurationId: id, name, change: 'deleted' });
      }),
  };
}

async function lockAll(db: Db, { organizationId }: SsoScope): Promise<void> {
  await db
    .selectFrom('sso_configurations')
    .select('id')
    .where('org_id', '=', organizationId)
    .orderBy('id')
    .forUpdate()
    .execute();
}

async function requireNotEnforced(db: Db, { organizationId }: SsoScope): Promise<void> {
  const { enforceSso } = await findPolicies(db, organizationId);
  if (enforceSso)
    throw new AppError('conflict', {
      detail: 'The organization requires single sign-on, and this is its active configuration.',
      fix: 'First turn the policy off: PATCH /api/v1/org/policies with {"enforce_sso": false}.',
      extensions: { policy: 'enforce_sso' },
    });
}

function readCertificates(
  { parseMetadata }: Pick<SsoInputOptions, 'parseMetadata'>,
  { type, idpMetadataXml }: StoredConfiguration,
): string[] {
  return type === 'saml' ? parseMetadata(idpMetadataXml ?? '').certificates.map(fingerprintOf) : [];
}

/**
 * The settings decide which accounts at the identity provider belong to owners, and an entity id or issuer can be copied. An
 * administrator must not become an owner by changing them.
 */
async function requireOwnerIfOwnersAreLinked(
  db: Db,
  { organizationId, member }: SsoScope,
  providerId: string | undefined,
): Promise<void> {
  if (member?.role === 'owner' || !(await isOwnersProvider(db, organizationId, providerId))) return;
  throw new AppError('permission_denied', {
    detail: 'An owner signs in through this identity provider, so only an owner can activate settings of it.',
    fix: 'Ask an owner to activate it.',
    extensions: { permission: 'sso:manage' },
  });
}

function notTested(id: string): AppError {
  return new AppError('conflict', {
    detail: 'No test has passed with the present settings.',
    fix: `POST /api/v1/org/sso/${id}/test, open the redirect_url in the same browser and sign in.`,
  });
}

function notActive(): AppError {
  return new AppError('conflict', {
    detail: 'Only an active configuration, or one that still links people, can be disabled.',
    fix: 'Delete it instead: DELETE /api/v1/org/sso/{id}.',
  });
}
