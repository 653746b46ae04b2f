import { type FilterQuery, LockMode, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { requireSafeName } from '../identity/safe-name.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import { DEFAULT_ENVIRONMENT_SLUG, type Environment, EnvironmentEntity } from './environment.entity.ts';
import { requireSlug, toSlug } from './slug.ts';

export interface NewEnvironment {
  name: string;
  /** Default: from the name. */
  slug?: string;
  kind: Environment['kind'];
}

/** Omitted fields stay. */
export interface EnvironmentChange {
  name?: string;
  slug?: string;
}

export interface EnvironmentService {
  /** Lists the environments the credential may use: the one it is bound to, or all of the organization. */
  list(scope: Scope, page: PageRequest): Promise<Page<Environment>>;
  /** @throws AppError `validation_error`; `already_exists` for a taken name or slug; `conflict` at the maximum. */
  create(scope: Scope, input: NewEnvironment): Promise<Environment>;
  /** @throws AppError as {@link create}; `not_found`; `conflict` for the slug of the default environment. */
  update(scope: Scope, environmentId: string, change: EnvironmentChange): Promise<Environment>;
  /**
   * Deletes an empty environment.
   *
   * @throws AppError `not_found`; `conflict` for the default environment, and for one that contains something, which it
   * names; `environment_suspended`.
   */
  remove(scope: Scope, environmentId: string): Promise<void>;
}

const MAX_ENVIRONMENTS = 100;

export function createEnvironmentService({ database }: { database: Database }): EnvironmentService {
  return {
    list: (scope, page) =>
      database.read(scope, (reader) => {
        const where: FilterQuery<Environment>[] = [{ organizationId: scope.organizationId }];
        if (scope.environmentBound) where.push({ id: scope.environmentId });
        return findPage(reader, EnvironmentEntity, { where, page });
      }),

    create: (scope, input) =>
      database.transaction(scope, async ({ em }) => {
        requireOrganizationWide(scope);
        const { organizationId } = scope;
        await requireFewEnvironments(em, organizationId);
        const name = requireSafeName(input.name, '/body/name');
        const slug = requireSlug(
          input.slug ?? toSlug(name),
          input.slug === undefined ? '/body/name' : '/body/slug',
        );
        const { kind } = input;
        const environment = em.create(EnvironmentEntity, {
          id: newId('environment'),
          organizationId,
          name,
          slug,
          kind,
        });
        await recordAudit(em, scope, {
          action: 'environment.created',
          resourceType: 'environment',
          resourceId: environment.id,
          details: { name, slug, kind },
        });
        return environment;
      }),

    update: (scope, environmentId, { name, slug }) =>
      database.transaction(scope, async ({ em }) => {
        const environment = await lockEnvironment(em, scope, environmentId);
        if (name !== undefined) environment.name = requireSafeName(name, '/body/name');
        if (slug !== undefined && slug !== environment.slug) {
          if (isDefault(environment)) throw isNeeded('its slug cannot change');
          environment.slug = requireSlug(slug, '/body/slug');
        }
        await recordAudit(em, scope, {
          action: 'environment.updated',
          resourceType: 'environment',
          resourceId: environmentId,
          details: {
            ...(name === undefined ? {} : { name: environment.name }),
            ...(slug === undefined ? {} : { slug }),
          },
        });
        return environment;
      }),

    remove: (scope, environmentId) =>
      database.transaction(scope, async ({ em }) => {
        const environment = await lockEnvironment(em, scope, environmentId);
        if (isDefault(environment)) throw isNeeded('it cannot be deleted');
        await requireEmpty(em, environmentId);
        await recordAudit(em, scope, {
          action: 'environment.deleted',
          resourceType: 'environment',
          resourceId: environmentId,
          details: { name: environment.name, slug: environment.slug, kind: environment.kind },
        });
        em.remove(environment);
      }),
  };
}

/** The lock keeps others from adding something, which refers to the environment, until the commit. */
async function lockEnvironment(em: EntityManager, scope: Scope, environmentId: string): Promise<Environment> {
  requireOrganizationWide(scope);
  const environment = await em.findOne(
    EnvironmentEntity,
    { id: environmentId, organizationId: scope.organizationId },
    { lockMode: LockMode.PESSIMISTIC_WRITE },
  );
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

async function requireFewEnvironments(em: EntityManager, organizationId: string): Promise<void> {
  await em.execute(sql`select from organizations where id = ${organizationId} for no key update`);
  const [row] = await em.execute<{ count: number }[]>(
    sql`select count(*)::int as count from environments where org_id = ${organizationId}`,
  );
  if ((row?.count ?? 0) >= MAX_ENVIRONMENTS)
    throw new AppError('conflict', {
      detail: `The organization has ${MAX_ENVIRONMENTS} environments, the maximum.`,
      fix: 'Delete one that you no longer need.',
    });
}

/** What belongs to the people who use the environment. Everything else goes with it. */
async function requireEmpty(em: EntityManager, environmentId: string): Promise<void> {
  const [row] = await em.execute<{ contents: string[] }[]>(sql`
    select array_remove(array[
      case when exists (select from inboxes where env_id = ${environmentId} and deleted_at is null) then 'inboxes' end,
      case when exists (select from messages where env_id = ${environmentId}) then 'messages' end,
      case when exists (select from drafts where env_id = ${environmentId}) then 'drafts' end,
      case when exists (select from attachments where env_id = ${environmentId}) then 'files' end,
      case when exists (
        select from webhook_endpoints where env_id = ${environmentId} and deleted_at is null) then 'webhook endpoints' end,
      case when exists (
        select from api_keys where env_id = ${environmentId} and revoked_at is null) then 'API keys' end,
      case when exists (select from suppressions where env_id = ${environmentId}) then 'suppressions' end,
      case when exists (select from list_entries where env_id = ${environmentId}) then 'list entries' end
    ], null) as contents`);
  const contents = row?.contents ?? [];
  if (contents.length > 0)
    throw new AppError('conflict', {
      detail: `The environment is not empty: it contains ${contents.join(', ')}.`,
      fix: 'Delete them first; DELETE /api/v1/inboxes/{id}?purge=true also deletes the messages of an inbox.',
      extensions: { contains: contents.join(', ') },
    });
}
