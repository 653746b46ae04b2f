import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { isOrganizationWide, type Scope } from '../identity/scope.ts';
import type { Tier } from '../organizations/tier.ts';
import { lockLimits } from './change-limits.ts';
import { USAGE_COUNTERS, type UsageCounter } from './counters.ts';
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

export interface LimitServiceOptions {
  database: Database;
  /** Called in the transaction of a change, to release work that a limit has held. */
  onChange?: (transaction: Transaction, organizationId: string) => Promise<void>;
  now?: () => Date;
}

export type LimitService = ReturnType<typeof createLimitService>;

export function createLimitService(options: LimitServiceOptions) {
  const { database, now = () => new Date() } = options;
  return {
    get: (scope: Scope): Promise<OrganizationLimits> =>
      database.read(scope, ({ db }) => readOrganizationLimits(db, scope.organizationId, now())),

    /**
     * Changes the organization's custom limits and warning thresholds. Omitted counters keep theirs.
     *
     * @throws AppError `unprocessable` for a limit above the allowed one, `permission_denied` for a credential bound to an
     * environment or inbox. On error nothing changes.
     */
    setCustom: (
      scope: Scope,
      changes: Partial<Record<UsageCounter, CustomLimitChange>>,
    ): Promise<OrganizationLimits> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        requireWholeOrganization(scope);
        await lockLimits(db, scope.organizationId);
        await updateCustomLimits(db, scope, { changes, at: now() });
        await recordAudit(db, scope, {
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
        return readOrganizationLimits(db, scope.organizationId, now());
      }),
  };
}

/** @throws AppError `not_found`. */
export async function readOrganizationLimits(
  db: Db,
  organizationId: string,
  now: Date,
): Promise<OrganizationLimits> {
  const statuses = await readUsageStatuses(db, { organizationIds: [organizationId], at: now });
  const [first] = statuses;
  if (!first) throw notFound('organization', organizationId);
  return {
    tier: first.limitInputs.tier,
    counters: statuses,
    resources: await readResourceQuotas(db, organizationId),
  };
}

interface CustomLimitChanges {
  changes: Partial<Record<UsageCounter, CustomLimitChange>>;
  at: Date;
}

async function updateCustomLimits(db: Db, scope: Scope, { changes, at }: CustomLimitChanges): Promise<void> {
  const { organizationId } = scope;
  const counters = USAGE_COUNTERS.filter((counter) => changes[counter] !== undefined);
  const statuses = await readUsageStatuses(db, { organizationIds: [organizationId], counters, at });
  for (const { counter, limitInputs } of statuses) {
    const { limit } = changes[counter] ?? {};
    if (typeof limit === 'number') requireAllowed(counter, limit, allowedLimit(counter, limitInputs).limit);
    await updateCustomLimit(db, scope, { counter, change: changes[counter] ?? {}, at });
  }
}

async function updateCustomLimit(
  db: Db,
  { organizationId, actor }: Scope,
  { counter, change, at }: { counter: UsageCounter; change: CustomLimitChange; at: Date },
): Promise<void> {
  const custom = await db
    .selectFrom('custom_limits')
    .select(['amount', 'warning_percent'])
    .where('org_id', '=', organizationId)
    .where('counter', '=', counter)
    .executeTakeFirst();
  const before = { limit: custom?.amount ?? null, warning_percent: custom?.warning_percent ?? null };
  const { limit = before.limit, warningPercent = before.warning_percent } = change;
  const values = { amount: limit, warning_percent: warningPercent, updated_at: at };
  await db
    .insertInto('custom_limits')
    .values({ org_id: organizationId, counter, ...values })
    .onConflict((conflict) => conflict.columns(['org_id', 'counter']).doUpdateSet(values))
    .execute();
  const after = { limit, warning_percent: warningPercent };
  if (before.limit === after.limit && before.warning_percent === after.warning_percent) return;
  await recordUsageEvent(db, {
    organizationId,
    counter,
    at,
    actor: actor.id,
    kind: 'own_limit_changed',
    data: { from: before, to: after },
  });
}

/** A credential bound to an environment or inbox must not limit other environments and inboxes. */
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
