import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Scope } from '../identity/scope.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { Tier } from '../organizations/tier.ts';
import { type Capped, readCapped } from './capped-things.ts';
import { type Limited, USAGE_COUNTERS, type UsageCounter } from './counters.ts';
import { allowedLimit } from './effective-limit.ts';
import { LimitOverrideEntity } from './limit-override.entity.ts';
import { OwnLimitEntity } from './own-limit.entity.ts';
import { readStandings, type Standing } from './standings.ts';
import type { LimitKind } from './tiers.ts';
import { recordUsageEvent } from './usage-ledger.ts';

/** What an organization has of limits: those of its counters, and of inboxes and domains. */
export interface LimitsReading {
  tier: Tier;
  standings: Standing[];
  capped: Capped[];
}

/** Undefined leaves as it is, null takes away. */
export interface OwnLimitChange {
  limit?: number | null;
  warningPercent?: number | null;
}

export interface NewOverride {
  limited: Limited;
  /** Null: unlimited. */
  limit: number | null;
  kind: LimitKind;
  /** Null: until it is removed. */
  expiresAt: Date | null;
  reason: string;
}

export interface LimitService {
  read(scope: Scope): Promise<LimitsReading>;
  /**
   * Changes the organization's own caps and warning thresholds; counters that are not named stay as they are.
   *
   * @throws AppError `unprocessable` for a cap above what the organization is allowed, `permission_denied` for a
   * credential that is not the whole organization's; nothing is changed then.
   */
  setOwn(scope: Scope, changes: Partial<Record<UsageCounter, OwnLimitChange>>): Promise<LimitsReading>;
  /** By an administrator, as everything below. @throws AppError `not_found`. */
  setTier(organizationId: string, tier: Tier, actor: string): Promise<void>;
  /** Takes the place of an override there is. @throws AppError `not_found`. */
  setOverride(organizationId: string, override: NewOverride, actor: string): Promise<void>;
  /** One that is not there may be removed, too. @throws AppError `not_found`. */
  removeOverride(organizationId: string, limited: Limited, actor: string): Promise<void>;
}

export interface LimitServiceOptions {
  database: Database;
  /** What waited for room may find some now; runs in the transaction of the change. */
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
    read: (scope) => database.transaction(scope, ({ em }) => read(em, scope.organizationId, now())),

    setOwn: (scope, changes) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        requireWholeOrganization(scope);
        await lockLimits(em, scope.organizationId);
        await setOwn(em, scope, { changes, at: now() });
        await em.flush();
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

    setOverride: (organizationId, { limited, limit, ...override }, actor) =>
      change(organizationId, async ({ em }) => {
        await findOrganization(em, organizationId);
        await em.upsert(LimitOverrideEntity, {
          organizationId,
          limited,
          amount: limit,
          ...override,
          createdBy: actor,
          createdAt: now(),
        });
        recordUsageEvent(em, {
          organizationId,
          actor,
          at: now(),
          counter: limited,
          kind: 'override_set',
          data: {
            limit,
            kind: override.kind,
            expires_at: override.expiresAt?.toISOString() ?? null,
            reason: override.reason,
          },
        });
      }),

    removeOverride: (organizationId, limited, actor) =>
      change(organizationId, async ({ em }) => {
        await findOrganization(em, organizationId);
        const removed = await em.nativeDelete(LimitOverrideEntity, { organizationId, limited });
        if (removed === 0) return;
        recordUsageEvent(em, {
          organizationId,
          actor,
          at: now(),
          counter: limited,
          kind: 'override_removed',
          data: {},
        });
      }),
  };
}

/** Changes of one organization's limits wait for each other: each tells the ledger what it found. */
async function lockLimits(em: EntityManager, organizationId: string): Promise<void> {
  await em.execute('select pg_advisory_xact_lock(hashtextextended(?, 0))', [
    JSON.stringify(['limits', organizationId]),
  ]);
}

async function read(em: EntityManager, organizationId: string, now: Date): Promise<LimitsReading> {
  const standings = await readStandings(em, { organizationIds: [organizationId], now });
  const [first] = standings;
  if (!first) throw notFound('organization', organizationId);
  return { tier: first.facts.tier, standings, capped: await readCapped(em, organizationId) };
}

interface OwnChanges {
  changes: Partial<Record<UsageCounter, OwnLimitChange>>;
  at: Date;
}

async function setOwn(em: EntityManager, scope: Scope, { changes, at }: OwnChanges): Promise<void> {
  const { organizationId } = scope;
  const counters = USAGE_COUNTERS.filter((counter) => changes[counter] !== undefined);
  const standings = await readStandings(em, { organizationIds: [organizationId], counters, now: at });
  for (const { counter, facts } of standings) {
    const { limit, warningPercent } = changes[counter] ?? {};
    if (typeof limit === 'number') refuseAbove(counter, limit, allowedLimit(counter, facts).limit);
    const own =
      (await em.findOne(OwnLimitEntity, { organizationId, counter })) ??
      em.create(OwnLimitEntity, {
        organizationId,
        counter,
        updatedAt: at,
        amount: null,
        warningPercent: null,
      });
    em.persist(own);
    const before = { limit: own.amount, warning_percent: own.warningPercent };
    if (limit !== undefined) own.amount = limit;
    if (warningPercent !== undefined) own.warningPercent = warningPercent;
    own.updatedAt = at;
    const after = { limit: own.amount, warning_percent: own.warningPercent };
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

/** An agent bound to a place must not cap the others. */
function requireWholeOrganization(scope: Scope): void {
  if (!scope.environmentBound && scope.inboxId === undefined) return;
  throw new AppError('permission_denied', {
    detail: 'Limits are the whole organization’s, and this credential is bound to a part of it.',
    fix: 'Use a key of the whole organization.',
  });
}

/** @throws AppError `unprocessable`. */
function refuseAbove(counter: UsageCounter, wanted: number, allowed: number | null): void {
  if (allowed === null || wanted <= allowed) return;
  throw new AppError('unprocessable', {
    detail: `The organization is allowed ${allowed} ${counter}; a cap of its own cannot be ${wanted}.`,
    fix: `Set at most ${allowed}, or null for no cap of your own; for more, ask an owner to upgrade.`,
    extensions: { counter, allowed },
  });
}

async function findOrganization(em: EntityManager, id: string) {
  const organization = await em.findOne(OrganizationEntity, { id });
  if (!organization) throw notFound('organization', id);
  return organization;
}
