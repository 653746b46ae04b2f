import type { EntityManager } from '@mikro-orm/postgresql';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { RowReader } from '../../platform/database/find-rows.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { isOrganizationWide, type Scope } from '../identity/scope.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { Tier } from '../organizations/tier.ts';
import { type LimitedResource, USAGE_COUNTERS, type UsageCounter } from './counters.ts';
import { CustomLimitEntity } from './custom-limit.entity.ts';
import { allowedLimit } from './effective-limit.ts';
import { LimitOverrideEntity } from './limit-override.entity.ts';
import { type ResourceQuota, readResourceQuotas } from './resource-quotas.ts';
import type { LimitKind } from './tiers.ts';
import { recordUsageEvent } from './usage-ledger.ts';
import { readUsageStatuses, type UsageStatus } from './usage-status.ts';

/** All limits of an organization: of its usage counters, and of its number of inboxes and domains. */
export interface OrganizationLimits {
  tier: Tier;
  counters: UsageStatus[];
  resources: ResourceQuota[];
}

/** Undefined keeps the value, null removes it. */
export interface CustomLimitChange {
  limit?: number | null;
  warningPercent?: number | null;
}

export interface NewOverride {
  resource: LimitedResource;
  /** Null: unlimited. */
  limit: number | null;
  kind: LimitKind;
  /** Null: valid until it is removed. */
  expiresAt: Date | null;
  reason: string;
}

export interface LimitService {
  get(scope: Scope): Promise<OrganizationLimits>;
  /**
   * Changes the organization's custom limits and warning thresholds; counters that are not named keep theirs.
   *
   * @throws AppError `unprocessable` for a limit above the allowed one, `permission_denied` for a credential bound to
   * an environment or inbox. On error nothing changes.
   */
  setCustom(
    scope: Scope,
    changes: Partial<Record<UsageCounter, CustomLimitChange>>,
  ): Promise<OrganizationLimits>;
  /** For administrators, like the methods below. @throws AppError `not_found`. */
  setTier(organizationId: string, tier: Tier, actor: string): Promise<void>;
  /** Replaces an existing override. @throws AppError `not_found`. */
  setOverride(organizationId: string, override: NewOverride, actor: string): Promise<void>;
  /** Does nothing if there is no override. @throws AppError `not_found`. */
  removeOverride(organizationId: string, resource: LimitedResource, actor: string): Promise<void>;
}

export interface LimitServiceOptions {
  database: Database;
  /** Called in the transaction of the change, to release work that a limit has held. */
  onChange?: (transaction: Transaction, organizationId: string) => Promise<void>;
  now?: () => Date;
}

export function createLimitService(options: LimitServiceOptions): LimitService {
  const { database, now = () => new Date() } = options;
  const change = (organizationId: string, work: (transaction: Transaction) => Promise<void>): Promise<void> =>
    database.systemTransaction(async (transaction) => {
      await lockLimits(transaction.em, organizationId);
      await work(transaction);
      await transaction.em.flush();
      await options.onChange?.(transaction, organizationId);
    });

  return {
    get: (scope) => database.read(scope, (reader) => read(reader, scope.organizationId, now())),

    setCustom: (scope, changes) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        requireWholeOrganization(scope);
        await lockLimits(em, scope.organizationId);
        await updateCustomLimits(em, scope, { changes, at: now() });
        await em.flush();
        await recordAudit(em, scope, {
          action: 'limits.updated',
          resourceType: 'organization',
          resourceId: scope.organizationId,
          details: Object.fromEntries(
            Object.entries(changes).map(([counter, { limit, warningPercent }]) => [
              counter,
              { limit, warning_percent: warningPercent },
            ]),
          ),
        });
        await options.onChange?.(transaction, scope.organizationId);
        return read(em, scope.organizationId, now());
      }),

    setTier: (organizationId, tier, actor) =>
      change(organizationId, async ({ em }) => {
        const organization = await findOrganization(em, organizationId);
        const before = organization.tier;
        if (before === tier) return;
        organization.tier = tier;
        recordUsageEvent(em, {
          organizationId,
          actor,
          at: now(),
          kind: 'tier_changed',
          data: { from: before, to: tier },
        });
      }),

    setOverride: (organizationId, { resource, limit, ...override }, actor) =>
      change(organizationId, async ({ em }) => {
        await findOrganization(em, organizationId);
        await em.upsert(LimitOverrideEntity, {
          organizationId,
          resource,
          amount: limit,
          ...override,
          createdBy: actor,
          createdAt: now(),
        });
        recordUsageEvent(em, {
          organizationId,
          actor,
          at: now(),
          counter: resource,
          kind: 'override_set',
          data: {
            limit,
            kind: override.kind,
            expires_at: override.expiresAt?.toISOString() ?? null,
            reason: override.reason,
          },
        });
      }),

    removeOverride: (organizationId, resource, actor) =>
      change(organizationId, async ({ em }) => {
        await findOrganization(em, organizationId);
        const removed = await em.nativeDelete(LimitOverrideEntity, { organizationId, resource });
        if (removed === 0) return;
        recordUsageEvent(em, {
          organizationId,
          actor,
          at: now(),
          counter: resource,
          kind: 'override_removed',
          data: {},
        });
      }),
  };
}

/** Serializes changes of an organization's limits, so that the ledger records the correct previous values. */
async function lockLimits(em: EntityManager, organizationId: string): Promise<void> {
  await lockKey(em, 'limits', organizationId);
}

async function read(reader: RowReader, organizationId: string, now: Date): Promise<OrganizationLimits> {
  const statuses = await readUsageStatuses(reader, { organizationIds: [organizationId], at: now });
  const [first] = statuses;
  if (!first) throw notFound('organization', organizationId);
  return {
    tier: first.limitInputs.tier,
    counters: statuses,
    resources: await readResourceQuotas(reader, organizationId),
  };
}

interface CustomLimitChanges {
  changes: Partial<Record<UsageCounter, CustomLimitChange>>;
  at: Date;
}

async function updateCustomLimits(
  em: EntityManager,
  scope: Scope,
  { changes, at }: CustomLimitChanges,
): Promise<void> {
  const { organizationId } = scope;
  const counters = USAGE_COUNTERS.filter((counter) => changes[counter] !== undefined);
  const statuses = await readUsageStatuses(em, { organizationIds: [organizationId], counters, at });
  for (const { counter, limitInputs } of statuses) {
    const { limit, warningPercent } = changes[counter] ?? {};
    if (typeof limit === 'number') requireAllowed(counter, limit, allowedLimit(counter, limitInputs).limit);
    const custom =
      (await em.findOne(CustomLimitEntity, { organizationId, counter })) ??
      em.create(CustomLimitEntity, {
        organizationId,
        counter,
        updatedAt: at,
        amount: null,
        warningPercent: null,
      });
    em.persist(custom);
    const before = { limit: custom.amount, warning_percent: custom.warningPercent };
    if (limit !== undefined) custom.amount = limit;
    if (warningPercent !== undefined) custom.warningPercent = warningPercent;
    custom.updatedAt = at;
    const after = { limit: custom.amount, warning_percent: custom.warningPercent };
    if (before.limit === after.limit && before.warning_percent === after.warning_percent) continue;
    recordUsageEvent(em, {
      organizationId,
      counter,
      at,
      actor: scope.actor.id,
      kind: 'own_limit_changed',
      data: { from: before, to: after },
    });
  }
}

/** A credential bound to an environment or inbox must not limit the others. */
function requireWholeOrganization(scope: Scope): void {
  if (isOrganizationWide(scope)) return;
  throw new AppError('permission_denied', {
    detail:
      'Limits apply to the whole organization, but this credential is bound to an environment or inbox.',
    fix: 'Use an API key that is bound to no environment and no inbox.',
  });
}

/** @throws AppError `unprocessable`. */
function requireAllowed(counter: UsageCounter, requested: number, allowed: number | null): void {
  if (allowed === null || requested <= allowed) return;
  throw new AppError('unprocessable', {
    detail: `own_limit of ${counter} is ${requested}, but the organization is allowed ${allowed}.`,
    fix: `Set own_limit to ${allowed} or less, or to null for none; upgrade the organization for a higher limit.`,
    extensions: { counter, allowed },
  });
}

async function findOrganization(em: EntityManager, id: string) {
  const organization = await em.findOne(OrganizationEntity, { id });
  if (!organization) throw notFound('organization', id);
  return organization;
}
