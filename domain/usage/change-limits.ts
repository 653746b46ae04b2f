import { lockKey } from '../../platform/database/advisory-lock.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import { setTier, type Tier } from '../organizations/tier.ts';
import type { LimitedResource } from './counters.ts';
import { type LimitOverride, LimitOverrideEntity } from './limit.entity.ts';
import { type LimitKind, TIER_LIMITS } from './tiers.ts';
import { recordUsageEvent } from './usage-ledger.ts';

/*
 * Changes of the limits that the service grants an organization. Each runs in the caller's transaction, which also audits
 * the change and starts the release of work that the old limits held. They return the id of the ledger entry.
 */

export interface LimitChange {
  organizationId: string;
  /** Staff member, or `system`. */
  actor: string;
  at: Date;
}

export interface NewOverride {
  resource: LimitedResource;
  /** Null: unlimited. */
  limit: number | null;
  /** Default: the kind of the organization's tier. */
  kind?: LimitKind | undefined;
  /** Null: valid until it is removed. */
  expiresAt: Date | null;
  reason: string;
}

export interface TierChange {
  from: Tier;
  eventId: string;
}

/** Returns null if the organization already has the tier. @throws AppError `not_found`. */
export async function changeTier(
  db: Db,
  { tier, ...change }: LimitChange & { tier: Tier },
): Promise<TierChange | null> {
  const from = await lockTier(db, change.organizationId);
  if (from === tier) return null;
  await setTier(db, change.organizationId, tier);
  const eventId = await recordUsageEvent(db, { ...change, kind: 'tier_changed', data: { from, to: tier } });
  return { from, eventId };
}

/** Replaces an existing override of the resource. @throws AppError `not_found`. */
export async function setOverride(
  db: Db,
  { resource, limit, expiresAt, reason, ...change }: LimitChange & NewOverride,
): Promise<{ override: LimitOverride; eventId: string }> {
  const { organizationId, actor, at } = change;
  const tier = await lockTier(db, organizationId);
  const kind = change.kind ?? TIER_LIMITS[tier].kind;
  const values = { amount: limit, kind, expires_at: expiresAt, reason, created_by: actor, created_at: at };
  const override = await db
    .insertInto('limit_overrides')
    .values({ org_id: organizationId, resource, ...values })
    .onConflict((conflict) => conflict.columns(['org_id', 'resource']).doUpdateSet(values))
    .returning(columnsOf(LimitOverrideEntity))
    .executeTakeFirstOrThrow(() => new Error('The override was not stored'));
  const eventId = await recordUsageEvent(db, {
    organizationId,
    actor,
    at,
    counter: resource,
    kind: 'override_set',
    data: { limit, kind, expires_at: expiresAt?.toISOString() ?? null, reason },
  });
  return { override, eventId };
}

/** Returns null if there is no override of the resource. @throws AppError `not_found`. */
export async function removeOverride(
  db: Db,
  { resource, ...change }: LimitChange & { resource: LimitedResource },
): Promise<string | null> {
  const { organizationId } = change;
  await lockTier(db, organizationId);
  const { numDeletedRows } = await db
    .deleteFrom('limit_overrides')
    .where('org_id', '=', organizationId)
    .where('resource', '=', resource)
    .executeTakeFirst();
  if (numDeletedRows === 0n) return null;
  return recordUsageEvent(db, { ...change, counter: resource, kind: 'override_removed', data: {} });
}

/** Serializes changes of an organization's limits, so that the ledger records the correct previous values. */
export async function lockLimits(db: Db, organizationId: string): Promise<void> {
  await lockKey(db, 'limits', organizationId);
}

async function lockTier(db: Db, organizationId: string): Promise<Tier> {
  await lockLimits(db, organizationId);
  const organization = await db
    .selectFrom('organizations')
    .select('tier')
    .where('id', '=', organizationId)
    .executeTakeFirst();
  if (!organization) throw notFound('organization', organizationId);
  return organization.tier;
}
