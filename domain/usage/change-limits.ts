import type { EntityManager } from '@mikro-orm/postgresql';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import { notFound } from '../../platform/errors.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { Tier } from '../organizations/tier.ts';
import type { LimitedResource } from './counters.ts';
import { type LimitOverride, LimitOverrideEntity } from './limit-override.entity.ts';
import { type LimitKind, TIER_LIMITS } from './tiers.ts';
import { recordUsageEvent } from './usage-ledger.ts';

/*
 * Changes of what the service grants an organization. Each runs in the caller's transaction, which also audits it and starts
 * the release of what the old limits held. They return the id of the ledger's entry.
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

/** Returns null if the organization has the tier already. @throws AppError `not_found`. */
export async function changeTier(
  em: EntityManager,
  { tier, ...change }: LimitChange & { tier: Tier },
): Promise<TierChange | null> {
  const organization = await lockOrganization(em, change.organizationId);
  const from = organization.tier;
  if (from === tier) return null;
  organization.tier = tier;
  const eventId = recordUsageEvent(em, { ...change, kind: 'tier_changed', data: { from, to: tier } });
  await em.flush();
  return { from, eventId };
}

/** Replaces an existing override of the resource. @throws AppError `not_found`. */
export async function setOverride(
  em: EntityManager,
  { resource, limit, expiresAt, reason, ...change }: LimitChange & NewOverride,
): Promise<{ override: LimitOverride; eventId: string }> {
  const { organizationId, actor, at } = change;
  const { tier } = await lockOrganization(em, organizationId);
  const kind = change.kind ?? TIER_LIMITS[tier as Tier].kind;
  const override = await em.upsert(LimitOverrideEntity, {
    organizationId,
    resource,
    amount: limit,
    kind,
    expiresAt,
    reason,
    createdBy: actor,
    createdAt: at,
  });
  const eventId = recordUsageEvent(em, {
    organizationId,
    actor,
    at,
    counter: resource,
    kind: 'override_set',
    data: { limit, kind, expires_at: expiresAt?.toISOString() ?? null, reason },
  });
  await em.flush();
  return { override, eventId };
}

/** Returns null if there is no override of the resource. @throws AppError `not_found`. */
export async function removeOverride(
  em: EntityManager,
  { resource, ...change }: LimitChange & { resource: LimitedResource },
): Promise<string | null> {
  const { organizationId } = change;
  await lockOrganization(em, organizationId);
  const removed = await em.nativeDelete(LimitOverrideEntity, { organizationId, resource });
  if (removed === 0) return null;
  const eventId = recordUsageEvent(em, { ...change, counter: resource, kind: 'override_removed', data: {} });
  await em.flush();
  return eventId;
}

/** Serializes changes of an organization's limits, so that the ledger records the correct previous values. */
export async function lockLimits(em: EntityManager, organizationId: string): Promise<void> {
  await lockKey(em, 'limits', organizationId);
}

async function lockOrganization(em: EntityManager, id: string) {
  await lockLimits(em, id);
  const organization = await em.findOne(OrganizationEntity, { id });
  if (!organization) throw notFound('organization', id);
  return organization;
}
