import { sql } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit, replacedValues } from '../audit/record-audit.ts';
import { requireSafeName } from '../identity/safe-name.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import { lockOrganization } from './break-glass-owner.ts';
import { DEFAULT_ENVIRONMENT_SLUG, type Environment, EnvironmentEntity } from './environment.entity.ts';
import { requireSlug, toSlug } from './slug.ts';

export interface NewEnvironment {
  name: string;
  /** Default: derived from the name. */
  slug?: string;
  kind: Environment['kind'];
}

/** Omitted fields stay. */
export interface EnvironmentChange {
  name?: string;
  slug?: string;
}

export type EnvironmentService = ReturnType<typeof createEnvironmentService>;

const MAX_ENVIRONMENTS = 100;

export function createEnvironmentService({ database }: { database: Database }) {
  return {
    /**
     * Lists the environments that the credential may use: the one to which it is bound, or all environments of the
     * organization.
     */
    list: (scope: Scope, page: PageRequest): Promise<Page<Environment>> =>
      database.read(scope, ({ db }) =>
        findPage(
          db
            .selectFrom('environments')
            .select(columnsOf(EnvironmentEntity))
            .where('org_id', '=', scope.organizationId)
            .$if(scope.environmentBound, (query) => query.where('id', '=', scope.environmentId)),
          'environments.id',
          page,
        ),
      ),

    /** @throws AppError `validation_error`; `already_exists` for a taken name or slug; `conflict` at the maximum. */
    create: (scope: Scope, input: NewEnvironment): Promise<Environment> =>
      database.transaction(scope, async ({ db }) => {
        requireOrganizationWide(scope);
        await requireFewEnvironments(db, scope.organizationId);
        const name = requireSafeName(input.name, '/body/name');
        const slug = requireSlug(
          input.slug ?? toSlug(name),
          input.slug === undefined ? '/body/name' : '/body/slug',
        );
        const { kind } = input;
        const environment = await insertEnvironment(db, scope, { name, slug, kind });
        await recordAudit(db, scope, {
          action: 'environment.created',
          resourceType: 'environment',
          resourceId: environment.id,
          details: { name, slug, kind },
        });
        return environment;
      }),

    /** @throws AppError as {@link create}; `not_found`; `conflict` for the slug of the default environment. */
    update: (scope: Scope, environmentId: string, { name, slug }: EnvironmentChange): Promise<Environment> =>
      database.transaction(scope, async ({ db }) => {
        const before = await lockEnvironment(db, scope, environmentId);
        const isNewSlug = slug !== undefined && slug !== before.slug;
        if (isNewSlug && isDefault(before)) throw isNeeded('its slug cannot change');
        const change = {
          ...(name !== undefined && { name: requireSafeName(name, '/body/name') }),
          ...(slug !== undefined && { slug: isNewSlug ? requireSlug(slug, '/body/slug') : slug }),
        };
        const isNewName = change.name !== undefined && change.name !== before.name;
        const after = isNewName || isNewSlug ? await changeEnvironment(db, before.id, change) : before;
        await recordAudit(db, scope, {
          action: 'environment.updated',
          resourceType: 'environment',
          resourceId: environmentId,
          details: { ...change, ...replacedValues(before, change) },
        });
        return after;
      }),

    /**
     * Deletes an empty environment.
     *
     * @throws AppError `not_found`; `conflict` for the default environment, and for one that is not empty, naming its
     * contents; `environment_suspended`.
     */
    remove: (scope: Scope, environmentId: string): Promise<void> =>
      database.transaction(scope, async ({ db }) => {
        const environment = await lockEnvironment(db, scope, environmentId);
        if (isDefault(environment)) throw isNeeded('it cannot be deleted');
        await requireEmpty(db, environmentId);
        await recordAudit(db, scope, {
          action: 'environment.deleted',
          resourceType: 'environment',
          resourceId: environmentId,
          details: { name: environment.name, slug: environment.slug, kind: environment.kind },
        });
        await db.deleteFrom('environments').where('id', '=', environmentId).execute();
      }),
  };
}

function insertEnvironment(
  db: Db,
  { organizationId }: Scope,
  environment: Required<NewEnvironment>,
): Promise<Environment> {
  return db
    .insertInto('environments')
    .values({ id: newId('environment'), org_id: organizationId, ...environment })
    .returning(columnsOf(EnvironmentEntity))
    .executeTakeFirstOrThrow(() => new Error('The environment was not stored'));
}

function changeEnvironment(db: Db, environmentId: string, change: EnvironmentChange): Promise<Environment> {
  return db
    .updateTable('environments')
    .set({ ...change, updated_at: sql`now()` })
    .where('id', '=', environmentId)
    .returning(columnsOf(EnvironmentEntity))
    .executeTakeFirstOrThrow(() => notFound('environment', environmentId));
}

/** The lock keeps other transactions from adding rows that refer to the environment until the commit. */
async function lockEnvironment(db: Db, scope: Scope, environmentId: string): Promise<Environment> {
  requireOrganizationWide(scope);
  const environment = await db
    .selectFrom('environments')
    .select(columnsOf(EnvironmentEntity))
    .where('id', '=', environmentId)
    .where('org_id', '=', scope.organizationId)
    .forUpdate()
    .executeTakeFirst();
  if (!environment) throw notFound('environment', environmentId);
  // A new environment with the same content would not be suspended.
  if (environment.status === 'suspended')
    throw new AppError('environment_suspended', {
      detail: 'The environment is suspended: it can be read but not changed.',
      fix: 'Ask an owner of the organization to contact support.',
    });
  return environment;
}

const isDefault = ({ slug }: Environment): boolean => slug === DEFAULT_ENVIRONMENT_SLUG;

function isNeeded(consequence: string): AppError {
  return new AppError('conflict', {
    detail: `This is the default environment of keys and sessions, so ${consequence}.`,
    fix: 'Use another environment.',
  });
}

async function requireFewEnvironments(db: Db, organizationId: string): Promise<void> {
  await lockOrganization(db, organizationId);
  const found = await db
    .selectFrom('environments')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('org_id', '=', organizationId)
    .executeTakeFirst();
  if ((found?.count ?? 0) >= MAX_ENVIRONMENTS)
    throw new AppError('conflict', {
      detail: `The organization has ${MAX_ENVIRONMENTS} environments, the maximum.`,
      fix: 'Delete one that you no longer need: DELETE /api/v1/org/environments/{id}.',
    });
}

/** Checks for content that belongs to people. Everything else is deleted with the environment. */
async function requireEmpty(db: Db, environmentId: string): Promise<void> {
  const found = await db
    .selectNoFrom(({ exists, selectFrom }) => [
      exists(
        selectFrom('inboxes')
          .select('id')
          .where('env_id', '=', environmentId)
          .where('deleted_at', 'is', null),
      ).as('inboxes'),
      exists(selectFrom('messages').select('id').where('env_id', '=', environmentId)).as('messages'),
      exists(selectFrom('drafts').select('id').where('env_id', '=', environmentId)).as('drafts'),
      exists(selectFrom('attachments').select('id').where('env_id', '=', environmentId)).as('files'),
      exists(
        selectFrom('webhook_endpoints')
          .select('id')
          .where('env_id', '=', environmentId)
          .where('deleted_at', 'is', null),
      ).as('webhook endpoints'),
      exists(
        selectFrom('api_keys')
          .select('id')
          .where('env_id', '=', environmentId)
          .where('revoked_at', 'is', null),
      ).as('API keys'),
      exists(selectFrom('suppressions').select('id').where('env_id', '=', environmentId)).as('suppressions'),
      exists(selectFrom('list_entries').select('id').where('env_id', '=', environmentId)).as('list entries'),
    ])
    .executeTakeFirst();
  const contents = Object.entries(found ?? {}).flatMap(([name, isThere]) => (isThere ? [name] : []));
  if (contents.length > 0)
    throw new AppError('conflict', {
      detail: `The environment is not empty: it contains ${contents.join(', ')}.`,
      fix: 'Delete them first; DELETE /api/v1/inboxes/{id}?purge=true also deletes the messages of an inbox.',
      extensions: { contains: contents.join(', ') },
    });
}
