import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import { findRow, type Row } from '../../platform/database/find-rows.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { isVerifiedDomain } from '../domains/is-verified-domain.ts';
import { requireOrganizationWide } from '../identity/scope.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { OwnerNotices } from '../people/owner-notices.ts';
import { findPolicies } from '../policies/find-policies.ts';
import { endSessionsOfSso } from '../sessions/session.service.ts';
import { fingerprintOf } from './saml/idp-metadata.ts';
import { type SsoAttempt, SsoAttemptEntity } from './sso-attempt.entity.ts';
import { type SsoConfiguration, SsoConfigurationEntity } from './sso-configuration.entity.ts';
import {
  type SsoConfigurationView,
  viewConfiguration,
  viewConfigurations,
} from './sso-configuration-views.ts';
import {
  auditConfiguration,
  claimOf,
  createDraft,
  disableConfiguration,
  discardPending,
  findPending,
  makeActive,
  openPending,
  requireFew,
} from './sso-drafts.ts';
import {
  applyChange,
  checkInput,
  type NewSsoConfiguration,
  type SsoChange,
  type SsoFields,
  type SsoInputOptions,
  splitFields,
} from './sso-input.ts';
import { findProvider, isOwnersProvider } from './sso-providers.ts';
import type { SsoScope } from './sso-scope.ts';

export type { SsoConfigurationView } from './sso-configuration-views.ts';
export type { NewSsoConfiguration, SsoChange } from './sso-input.ts';

export interface SsoConfigurationService {
  /**
   * Creates a draft.
   *
   * @param onCreate runs in the transaction; its rejection undoes the draft.
   * @throws AppError `validation_error`, `plan_limit_reached`.
   */
  create(
    scope: SsoScope,
    input: NewSsoConfiguration,
    onCreate?: (transaction: Transaction, draft: SsoConfiguration) => Promise<void>,
  ): Promise<SsoConfigurationView>;
  /** @throws AppError `not_found`. */
  get(scope: SsoScope, configurationId: string): Promise<Row<SsoConfiguration>>;
  /** @throws AppError `not_found`. */
  view(scope: SsoScope, configurationId: string): Promise<SsoConfigurationView>;
  /** Reads metadata from its URL, so that {@link create} and {@link update} need no request in their transaction. */
  prefetchMetadata(url: string | undefined): Promise<void>;
  list(scope: SsoScope, page: PageRequest): Promise<Page<SsoConfigurationView>>;
  /**
   * Changes a draft or disabled configuration, which then has to be tested again. Of an active one, what a test proves waits as its
   * pending changes until {@link activate}; the rest takes effect at once.
   *
   * @param onUpdate gets the locked configuration before the change; its rejection prevents the change.
   * @throws AppError `domain_not_verified` for a domain that an active configuration would get.
   */
  update(
    scope: SsoScope,
    configurationId: string,
    change: SsoChange,
    onUpdate?: (transaction: Transaction, found: SsoConfiguration) => Promise<void>,
  ): Promise<SsoConfigurationView>;
  /** Forgets the pending changes. @throws AppError `conflict` if there are none. */
  discard(scope: SsoScope, configurationId: string): Promise<SsoConfigurationView>;
  /**
   * Stops logins through the active configuration, or linking through a replaced one.
   *
   * @throws AppError `conflict` while SSO is enforced.
   */
  disable(scope: SsoScope, configurationId: string): Promise<SsoConfigurationView>;
  /**
   * Activates a tested configuration, or the tested pending changes of the active one. Any other active configuration is
   * disabled; if another identity provider takes its place, it stays usable for linking.
   *
   * @throws AppError `conflict` if no test has passed since the last change; `domain_not_verified`.
   */
  activate(scope: SsoScope, configurationId: string): Promise<SsoConfigurationView>;
  /**
   * Deletes a configuration, and ends the sessions it made. A later configuration of the same identity provider knows its people.
   *
   * @throws AppError `conflict`.
   */
  remove(scope: SsoScope, configurationId: string): Promise<void>;
  /** Lists the last 20 logins and tests, newest first. @throws AppError `not_found`. */
  listAttempts(scope: SsoScope, configurationId: string, page: PageRequest): Promise<Page<Row<SsoAttempt>>>;
}

export interface SsoConfigurationOptions extends SsoInputOptions {
  database: Database;
  secretBox: SecretBox;
  notifications: NotificationService;
  ownerNotices: Pick<OwnerNotices, 'ssoStopped'>;
}

export function createSsoConfigurationService(options: SsoConfigurationOptions): SsoConfigurationService {
  const { database, secretBox, notifications, ownerNotices } = options;
  return {
    async create(scope, input, onCreate) {
      requireOrganizationWide(scope);
      const fields = await checkInput(options, input, { isNew: true });
      return database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        await requireFew(em, scope);
        const draft = createDraft(em, scope, { type: input.type, replacesId: null });
        applyChange(draft, fields, secretBox);
        await em.flush();
        await onCreate?.(transaction, draft);
        await auditConfiguration(em, scope, 'created', draft.id, {
          type: input.type,
          domains: draft.domains,
        });
        return viewConfiguration(em, scope, draft.id);
      });
    },

    async prefetchMetadata(url) {
      // Only what the checks would read, and refuse.
      if (url === undefined || options.findTargetRefusal(url) !== null) return;
      await options.metadataSource.read(url).catch(() => undefined);
    },

    get: (scope, configurationId) =>
      database.read(scope, (reader) => {
        requireOrganizationWide(scope);
        return findOwn(reader, scope, configurationId);
      }),

    view: (scope, configurationId) =>
      database.read(scope, (reader) => {
        requireOrganizationWide(scope);
        return viewConfiguration(reader, scope, configurationId);
      }),

    list: (scope, page) =>
      database.read(scope, async (reader) => {
        requireOrganizationWide(scope);
        const { items, ...rest } = await findPage(reader, SsoConfigurationEntity, {
          where: { organizationId: scope.organizationId, replacesId: null },
          page,
        });
        return { ...rest, items: await viewConfigurations(reader, scope, items) };
      }),

    async update(scope, configurationId, change, onUpdate) {
      requireOrganizationWide(scope);
      const { type } = await database.read(scope, (reader) => findOwn(reader, scope, configurationId));
      const fields = await checkInput(options, { type, ...change }, { isNew: false });
      return database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const found = await lockConfiguration(em, scope, configurationId);
        await onUpdate?.(transaction, found);
        if (found.status === 'active') await changeActive(em, scope, { found, fields, secretBox });
        else {
          applyChange(found, fields, secretBox);
          found.version += 1;
          found.testedAt = null;
          if (found.status === 'tested') found.status = 'draft';
        }
        await em.flush();
        await auditConfiguration(em, scope, 'updated', found.id, { fields: Object.keys(change) });
        return viewConfiguration(em, scope, found.id);
      });
    },

    discard: (scope, configurationId) =>
      database.transaction(scope, async ({ em }) => {
        requireOrganizationWide(scope);
        const { id } = await lockConfiguration(em, scope, configurationId);
        if (!(await discardPending(em, scope, id))) throw nothingPending();
        await auditConfiguration(em, scope, 'discarded', id);
        return viewConfiguration(em, scope, id);
      }),

    disable: (scope, configurationId) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        requireOrganizationWide(scope);
        const found = await lockConfiguration(em, scope, configurationId);
        const wasActive = found.status === 'active';
        if (!wasActive && found.replacedAt === null) throw notActive();
        if (wasActive) await requireNotEnforced(em, scope);
        disableConfiguration(found);
        await em.flush();
        await discardPending(em, scope, found.id);
        await auditConfiguration(em, scope, 'disabled', found.id);
        const { id, name } = found;
        if (wasActive)
          await ownerNotices.ssoStopped(transaction, scope, {
            configurationId: id,
            name,
            change: 'disabled',
          });
        return viewConfiguration(em, scope, id);
      }),

    activate: (scope, configurationId) =>
      database.transaction(scope, async (transaction) => {
        requireOrganizationWide(scope);
        const { em } = transaction;
        await lockAll(em, scope);
        const configuration = await lockConfiguration(em, scope, configurationId);
        const pending = await findPending(em, scope, configuration.id);
        if (configuration.status === 'active' && !pending)
          return viewConfiguration(em, scope, configuration.id);
        const tested = pending ?? configuration;
        if (tested.status !== 'tested' || tested.testedAt === null) throw notTested(configurationId);
        const certificates = readCertificates(options, tested);
        const provider = await findProvider(em, claimOf(tested, certificates), configuration.providerId);
        await requireOwnerIfOwnersAreLinked(em, scope, provider);
        await requireVerified(em, scope, configuration.domains);
        await makeActive(em, scope, { configuration, pending, certificates }, secretBox);
        const active = configuration;
        await auditConfiguration(em, scope, 'activated', active.id, {
          domains: active.domains,
          issuer: active.issuer,
        });
        // Those who control the identity provider control who gets in.
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
        return viewConfiguration(em, scope, active.id);
      }),

    remove: (scope, configurationId) =>
      // Sessions belong to people: the role that sees them deletes the configuration, too.
      database.peopleTransaction(async (transaction) => {
        const { em } = transaction;
        requireOrganizationWide(scope);
        const found = await lockConfiguration(em, scope, configurationId);
        if (found.status === 'active') await requireNotEnforced(em, scope);
        await em.execute(sql`
          delete from sso_configurations
          where org_id = ${scope.organizationId} and (id = ${found.id} or replaces_id = ${found.id})`);
        await endSessionsOfSso(em, found.id);
        await auditConfiguration(em, scope, 'deleted', found.id);
        const { id, name } = found;
        // A draft has let no one in.
        if (found.activatedAt !== null)
          await ownerNotices.ssoStopped(transaction, scope, { configurationId: id, name, change: 'deleted' });
      }),

    listAttempts: (scope, configurationId, page) =>
      database.read(scope, async (reader) => {
        requireOrganizationWide(scope);
        await findOwn(reader, scope, configurationId);
        return findPage(reader, SsoAttemptEntity, {
          where: { organizationId: scope.organizationId, configurationId },
          page,
        });
      }),
  };
}

async function findOwn(
  reader: Parameters<typeof findRow>[0],
  { organizationId }: SsoScope,
  configurationId: string,
): Promise<Row<SsoConfiguration>> {
  const found = await findRow(reader, SsoConfigurationEntity, {
    where: { id: configurationId, organizationId, replacesId: null },
  });
  if (!found) throw notFound('SSO configuration', configurationId);
  return found;
}

async function lockAll(em: EntityManager, { organizationId }: SsoScope): Promise<void> {
  await em.execute(
    sql`select from sso_configurations where org_id = ${organizationId} order by id for update`,
  );
}

async function lockConfiguration(
  em: EntityManager,
  { organizationId }: SsoScope,
  id: string,
): Promise<SsoConfiguration> {
  await em.execute(
    sql`select from sso_configurations where id = ${id} and org_id = ${organizationId} for update`,
  );
  const found = await em.findOne(
    SsoConfigurationEntity,
    { id, organizationId, replacesId: null },
    { populate: ['idpMetadataXml'] },
  );
  if (!found) throw notFound('SSO configuration', id);
  return found;
}

async function requireNotEnforced(em: EntityManager, { organizationId }: SsoScope): Promise<void> {
  const { enforceSso } = await findPolicies(em, organizationId);
  if (enforceSso)
    throw new AppError('conflict', {
      detail: 'The organization requires single sign-on, and this is its active configuration.',
      fix: 'First turn the policy off: PATCH /api/v1/org/policies with {"enforce_sso": false}.',
      extensions: { policy: 'enforce_sso' },
    });
}

/**
 * Of an active configuration, settings that a test proves wait as pending changes. Values that it has already change nothing, so that
 * a form can send them all.
 */
async function changeActive(
  em: EntityManager,
  scope: SsoScope,
  { found, fields, secretBox }: { found: SsoConfiguration; fields: SsoFields; secretBox: SecretBox },
): Promise<void> {
  const existing = await findPending(em, scope, found.id);
  const { tested, others } = splitFields(fields, existing ?? found);
  if (others.domains) await requireVerified(em, scope, others.domains);
  applyChange(found, others, secretBox);
  const isTestNeeded = Object.keys(tested).length > 0;
  const pending = isTestNeeded ? await openPending(em, scope, found, secretBox) : existing;
  if (!pending) return;
  applyChange(pending, { ...others, ...tested }, secretBox);
  if (!isTestNeeded) return;
  pending.version += 1;
  pending.testedAt = null;
  pending.status = 'draft';
}

function readCertificates(
  { parseMetadata }: SsoInputOptions,
  { type, idpMetadataXml }: SsoConfiguration,
): string[] {
  return type === 'saml' ? parseMetadata(idpMetadataXml ?? '').certificates.map(fingerprintOf) : [];
}

async function requireVerified(em: EntityManager, { organizationId }: SsoScope, domains: readonly string[]) {
  for (const domain of domains)
    if (!(await isVerifiedDomain(em, organizationId, domain))) throw domainNotVerified(domain);
}

/**
 * The settings decide who is an owner's account at the identity provider, and an entity id or issuer can be copied: an
 * administrator must not become an owner by them.
 */
async function requireOwnerIfOwnersAreLinked(
  em: EntityManager,
  { organizationId, member }: SsoScope,
  providerId: string | undefined,
): Promise<void> {
  if (member?.role === 'owner' || !(await isOwnersProvider(em, organizationId, providerId))) return;
  throw new AppError('permission_denied', {
    detail: 'An owner signs in through this identity provider, so only an owner can activate settings of it.',
    fix: 'Ask an owner to activate it.',
    extensions: { permission: 'sso:manage' },
  });
}

const nothingPending = (): AppError =>
  new AppError('conflict', {
    detail: 'The configuration has no pending changes.',
    fix: 'Nothing has to be done.',
  });

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

function domainNotVerified(domain: string): AppError {
  return new AppError('domain_not_verified', {
    detail: `The organization has not verified the domain ${domain}.`,
    fix: 'Verify it (POST /api/v1/domains), or remove it from the configuration.',
  });
}
