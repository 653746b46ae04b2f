import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { RowReader } from '../../platform/database/find-rows.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { isOrganizationWide, type Scope } from '../identity/scope.ts';
import type { Tier } from '../organizations/tier.ts';
import { lockLimits } from './change-limits.ts';
import { USAGE_COUNTERS, type UsageCounter } from './counters.ts';
import { CustomLimitEntity } from './custom-limit.entity.ts';
import { allowedLimit } from './effective-limit.ts';
import { type ResourceQuota, readResourceQuotas } from './resource-quotas.ts';
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
}

export interface LimitServiceOptions {
  database: Database;
  /** Called in the transaction of a change, to release work that a limit has held. */
  onChange?: (transaction: Transaction, organizationId: string) => Promise<void>;
  now?: () => Date;
}

export function createLimitService(options: LimitServiceOptions): LimitService {
  const { database, now = () => new Date() } = options;
  return {
    get: (scope) =>
      database.read(scope, (reader) => readOrganizationLimits(reader, scope.organizationId, now())),

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
        return readOrganizationLimits(em, scope.organizationId, now());
      }),
  };
}

/** @throws AppError `not_found`. */
export async function readOrganizationLimits(
  reader: RowReader,
  organizationId: string,
  now: Date,
): Promise<OrganizationLimits> {
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
