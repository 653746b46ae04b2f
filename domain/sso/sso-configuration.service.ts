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
import { type SsoAttempt, SsoAttemptEntity } from './sso-attempt.entity.ts';
import { type SsoConfiguration, SsoConfigurationEntity } from './sso-configuration.entity.ts';
import {
  auditConfiguration,
  createDraft,
  disableConfiguration,
  draftBeside,
  makeActive,
  requireFew,
} from './sso-drafts.ts';
import {
  applyChange,
  checkInput,
  type NewSsoConfiguration,
  type SsoChange,
  type SsoInputOptions,
} from './sso-input.ts';
import type { SsoScope } from './sso-scope.ts';

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
  ): Promise<SsoConfiguration>;
  /** @throws AppError `not_found`. */
  get(scope: SsoScope, configurationId: string): Promise<Row<SsoConfiguration>>;
  /** Reads metadata from its URL, so that {@link create} and {@link update} need no request in their transaction. */
  prefetchMetadata(url: string | undefined): Promise<void>;
  list(scope: SsoScope, page: PageRequest): Promise<Page<Row<SsoConfiguration>>>;
  /**
   * Changes a draft or disabled configuration, which then has to be tested again. The change of an active one makes a draft
   * beside it, or changes the draft there is; the active one stays until the draft is tested and activated.
   *
   * @param onUpdate gets the locked configuration before the change; its rejection prevents the change.
   * @returns the changed configuration, or the draft.
   */
  update(
    scope: SsoScope,
    configurationId: string,
    change: SsoChange,
    onUpdate?: (transaction: Transaction, found: SsoConfiguration) => Promise<void>,
  ): Promise<SsoConfiguration>;
  /** Stops logins through the active configuration. @throws AppError `conflict` while SSO is enforced. */
  disable(scope: SsoScope, configurationId: string): Promise<SsoConfiguration>;
  /**
   * Activates a tested configuration. A draft becomes part of the configuration it replaces, whose id stays; any other
   * active configuration is disabled.
   *
   * @throws AppError `conflict` if no test has passed since the last change; `domain_not_verified`.
   */
  activate(scope: SsoScope, configurationId: string): Promise<SsoConfiguration>;
  /** Deletes a configuration with its links to accounts, and ends the sessions it made. @throws AppError `conflict`. */
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
        return draft;
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

    list: (scope, page) =>
      database.read(scope, (reader) => {
        requireOrganizationWide(scope);
        return findPage(reader, SsoConfigurationEntity, {
          where: { organizationId: scope.organizationId },
          page,
        });
      }),

    async update(scope, configurationId, change, onUpdate) {
      requireOrganizationWide(scope);
      const { type } = await database.read(scope, (reader) => findOwn(reader, scope, configurationId));
      const fields = await checkInput(options, { type, ...change }, { isNew: false });
      return database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const found = await lockConfiguration(em, scope, configurationId);
        await onUpdate?.(transaction, found);
        const changed = found.status === 'active' ? await draftBeside(em, scope, found, secretBox) : found;
        applyChange(changed, fields, secretBox);
        changed.version += 1;
        changed.testedAt = null;
        if (changed.status === 'tested') changed.status = 'draft';
        await em.flush();
        await auditConfiguration(em, scope, 'updated', changed.id, { fields: Object.keys(change) });
        return changed;
      });
    },

    disable: (scope, configurationId) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        requireOrganizationWide(scope);
        const found = await lockConfiguration(em, scope, configurationId);
        if (found.status !== 'active') throw notActive();
        await requireNotEnforced(em, scope);
        disableConfiguration(found);
        await em.flush();
        await auditConfiguration(em, scope, 'disabled', found.id);
        const { id, name } = found;
        await ownerNotices.ssoStopped(transaction, scope, { configurationId: id, name, change: 'disabled' });
        return found;
      }),

    activate: (scope, configurationId) =>
      database.transaction(scope, async (transaction) => {
        requireOrganizationWide(scope);
        const { em } = transaction;
        await lockAll(em, scope);
        const tested = await lockConfiguration(em, scope, configurationId);
        if (tested.status === 'active') return tested;
        if (tested.status !== 'tested' || tested.testedAt === null) throw notTested(configurationId);
        await requireOwnerIfOwnersAreLinked(em, scope, tested);
        for (const domain of tested.domains)
          if (!(await isVerifiedDomain(em, scope.organizationId, domain))) throw domainNotVerified(domain);
        const active = await makeActive(em, scope, tested, secretBox);
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
        return active;
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
    where: { id: configurationId, organizationId },
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
    { id, organizationId },
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
 * The settings decide who is an owner's account at the identity provider, and an entity id or issuer can be copied: an
 * administrator must not become an owner by them.
 */
async function requireOwnerIfOwnersAreLinked(
  em: EntityManager,
  { organizationId, member }: SsoScope,
  { id, replacesId }: SsoConfiguration,
): Promise<void> {
  if (member?.role === 'owner') return;
  const linked = await em.execute<object[]>(sql`
    select from sso_identities i
    join members m on m.org_id = i.org_id and m.user_id = i.user_id and m.role = 'owner'
    where i.org_id = ${organizationId} and i.configuration_id in (${[id, replacesId ?? id]}) limit 1`);
  if (linked.length > 0)
    throw new AppError('permission_denied', {
      detail: 'An owner signs in through this configuration, so only an owner can activate a change of it.',
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
    detail: 'Only an active configuration can be disabled.',
    fix: 'Delete it instead: DELETE /api/v1/org/sso/{id}.',
  });
}

function domainNotVerified(domain: string): AppError {
  return new AppError('domain_not_verified', {
    detail: `The organization has not verified the domain ${domain}.`,
    fix: 'Verify it (POST /api/v1/domains), or remove it from the configuration.',
  });
}
