import type { SecretBox } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { requireOrganizationWide } from '../identity/scope.ts';
import {
  auditConfiguration,
  changeConfiguration,
  discardPending,
  insertConfiguration,
  lockConfiguration,
  lockPending,
  type NewConfiguration,
  requireVerified,
  type StoredConfiguration,
} from './change-configuration.ts';
import { SsoConfigurationEntity } from './sso-configuration.entity.ts';
import {
  findConfiguration,
  type SsoConfigurationRow,
  type SsoConfigurationView,
  viewConfiguration,
  viewConfigurations,
} from './sso-configuration-views.ts';
import { copyConfiguration, newDraft, requireFew } from './sso-drafts.ts';
import {
  checkInput,
  type NewSsoConfiguration,
  type SsoChange,
  type SsoFields,
  type SsoInputOptions,
  sealSecret,
  splitFields,
} from './sso-input.ts';
import { type SsoAttempt, SsoAttemptEntity } from './sso-login.entity.ts';
import type { SsoScope } from './sso-scope.ts';

export type { SsoConfigurationView } from './sso-configuration-views.ts';
export type { NewSsoConfiguration, SsoChange } from './sso-input.ts';

export type SsoConfigurationService = ReturnType<typeof createSsoConfigurationService>;

/** A created or changed configuration. */
export type ChangedConfiguration = Pick<NewConfiguration, 'id' | 'activatedAt'>;

export interface SsoConfigurationOptions extends SsoInputOptions {
  database: Database;
  secretBox: SecretBox;
}

/** Creates, shows and changes configurations. {@link createSsoActivationService} decides who signs in through them. */
export function createSsoConfigurationService(options: SsoConfigurationOptions) {
  const { database, secretBox } = options;
  return {
    /**
     * Creates a draft.
     *
     * @param onCreate runs in the transaction; its rejection undoes the draft.
     * @throws AppError `validation_error`, `plan_limit_reached`.
     */
    async create(
      scope: SsoScope,
      input: NewSsoConfiguration,
      onCreate?: (transaction: Transaction, draft: ChangedConfiguration) => Promise<void>,
    ): Promise<SsoConfigurationView> {
      requireOrganizationWide(scope);
      const fields = await checkInput(options, input, { isNew: true });
      return database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        await requireFew(db, scope);
        const empty = newDraft(scope, { type: input.type, replacesId: null });
        const draft = { ...empty, ...sealSecret(fields, empty.id, secretBox) };
        await insertConfiguration(db, draft);
        await onCreate?.(transaction, draft);
        await auditConfiguration(db, scope, 'created', draft.id, {
          type: input.type,
          domains: draft.domains,
        });
        return viewConfiguration(db, scope, draft.id);
      });
    },

    /** Reads metadata from its URL, so that {@link create} and {@link update} need no request in their transaction. */
    async prefetchMetadata(url: string | undefined): Promise<void> {
      // The checks read no other URLs.
      if (url === undefined || options.findTargetRefusal(url) !== null) return;
      await options.metadataSource.read(url).catch(() => undefined);
    },

    /** @throws AppError `not_found`. */
    get: (scope: SsoScope, configurationId: string): Promise<SsoConfigurationRow> =>
      database.read(scope, ({ db }) => {
        requireOrganizationWide(scope);
        return findConfiguration(db, scope, configurationId);
      }),

    /** @throws AppError `not_found`. */
    view: (scope: SsoScope, configurationId: string): Promise<SsoConfigurationView> =>
      database.read(scope, ({ db }) => {
        requireOrganizationWide(scope);
        return viewConfiguration(db, scope, configurationId);
      }),

    list: (scope: SsoScope, page: PageRequest): Promise<Page<SsoConfigurationView>> =>
      database.read(scope, async ({ db }) => {
        requireOrganizationWide(scope);
        const configurations = db
          .selectFrom('sso_configurations')
          .select(columnsOf(SsoConfigurationEntity))
          .where('org_id', '=', scope.organizationId)
          .where('replaces_id', 'is', null);
        const { items, next } = await findPage(configurations, 'sso_configurations.id', page);
        return { next, items: await viewConfigurations(db, scope, items) };
      }),

    /**
     * Changes a draft or disabled configuration, which then has to be tested again. For an active configuration, settings
     * that need a test become pending changes until they are activated; other settings take effect at once.
     *
     * @param onUpdate gets the locked configuration before the change; its rejection prevents the change.
     * @throws AppError `domain_not_verified` for a new domain of an active configuration.
     */
    async update(
      scope: SsoScope,
      configurationId: string,
      change: SsoChange,
      onUpdate?: (transaction: Transaction, found: ChangedConfiguration) => Promise<void>,
    ): Promise<SsoConfigurationView> {
      requireOrganizationWide(scope);
      const { type } = await database.read(scope, ({ db }) => findConfiguration(db, scope, configurationId));
      const fields = await checkInput(options, { type, ...change }, { isNew: false });
      return database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const found = await lockConfiguration(db, scope, configurationId);
        await onUpdate?.(transaction, found);
        if (found.status === 'active') await changeActive(db, scope, { found, fields, secretBox });
        else
          await changeConfiguration(db, found, {
            ...sealSecret(fields, found.id, secretBox),
            version: found.version + 1,
            testedAt: null,
            status: found.status === 'tested' ? 'draft' : found.status,
          });
        await auditConfiguration(db, scope, 'updated', found.id, { fields: Object.keys(change) });
        return viewConfiguration(db, scope, found.id);
      });
    },

    /** Forgets the pending changes. @throws AppError `conflict` if there are none. */
    discard: (scope: SsoScope, configurationId: string): Promise<SsoConfigurationView> =>
      database.transaction(scope, async ({ db }) => {
        requireOrganizationWide(scope);
        const { id } = await lockConfiguration(db, scope, configurationId);
        if (!(await discardPending(db, scope, id))) throw nothingPending();
        await auditConfiguration(db, scope, 'discarded', id);
        return viewConfiguration(db, scope, id);
      }),

    /** Lists the last 20 logins and tests, newest first. @throws AppError `not_found`. */
    listAttempts: (scope: SsoScope, configurationId: string, page: PageRequest): Promise<Page<SsoAttempt>> =>
      database.read(scope, async ({ db }) => {
        requireOrganizationWide(scope);
        await findConfiguration(db, scope, configurationId);
        const attempts = db
          .selectFrom('sso_attempts')
          .select(columnsOf(SsoAttemptEntity))
          .where('org_id', '=', scope.organizationId)
          .where('configuration_id', '=', configurationId);
        return findPage(attempts, 'sso_attempts.id', page);
      }),
  };
}

/**
 * Settings that need a test become pending changes of the active configuration. Values that it already has change nothing,
 * so that a form can send all of them.
 */
async function changeActive(
  db: Db,
  scope: SsoScope,
  { found, fields, secretBox }: { found: StoredConfiguration; fields: SsoFields; secretBox: SecretBox },
): Promise<void> {
  const pending = await lockPending(db, scope, found.id);
  const { tested, others } = splitFields(fields, pending ?? found);
  if (others.domains) await requireVerified(db, scope, others.domains);
  const changed = await changeConfiguration(db, found, others);
  const isTestNeeded = Object.keys(tested).length > 0;
  if (!isTestNeeded) {
    if (pending) await changeConfiguration(db, pending, others);
    return;
  }
  if (!pending) await requireFew(db, scope);
  const base = pending ?? copyConfiguration(scope, changed, { replacesId: found.id }, secretBox);
  const change = {
    ...sealSecret({ ...others, ...tested }, base.id, secretBox),
    version: base.version + 1,
    testedAt: null,
    status: 'draft' as const,
  };
  if (pending) await changeConfiguration(db, pending, change);
  else await insertConfiguration(db, { ...base, ...change });
}

const nothingPending = (): AppError =>
  new AppError('conflict', {
    detail: 'The configuration has no pending changes.',
    fix: 'Nothing has to be done.',
  });
