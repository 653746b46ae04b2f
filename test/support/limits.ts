import type { Tier } from '../../domain/organizations/tier.ts';
import {
  changeTier,
  type NewOverride,
  removeOverride,
  setOverride,
} from '../../domain/usage/change-limits.ts';
import type { LimitedResource } from '../../domain/usage/counters.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';

const DEFAULT_ACTOR = 'support@example.com';

export type TestLimits = ReturnType<typeof administerLimits>;

/**
 * Changes the limits of organizations as staff do, without the API.
 *
 * @param options.onChange called in the transaction of each change.
 */
export function administerLimits({
  database,
  onChange,
}: {
  database: Database;
  onChange?: (transaction: Transaction, organizationId: string) => Promise<void>;
}) {
  const change = (organizationId: string, work: (transaction: Transaction) => Promise<unknown>) =>
    database.systemTransaction(async (transaction) => {
      await work(transaction);
      await onChange?.(transaction, organizationId);
    });
  const by = (organizationId: string, actor: string) => ({ organizationId, actor, at: new Date() });
  return {
    setTier: (organizationId: string, tier: Tier, actor = DEFAULT_ACTOR) =>
      change(organizationId, ({ db }) => changeTier(db, { ...by(organizationId, actor), tier })),
    setOverride: (organizationId: string, override: NewOverride, actor = DEFAULT_ACTOR) =>
      change(organizationId, ({ db }) => setOverride(db, { ...by(organizationId, actor), ...override })),
    removeOverride: (organizationId: string, resource: LimitedResource, actor = DEFAULT_ACTOR) =>
      change(organizationId, ({ db }) => removeOverride(db, { ...by(organizationId, actor), resource })),
  };
}

/** Overrides an organization's limit; by default hard and without expiry. */
export function setLimit(
  limits: Pick<TestLimits, 'setOverride'>,
  organizationId: string,
  override: Pick<NewOverride, 'resource' | 'limit'> & Partial<NewOverride>,
): Promise<void> {
  return limits.setOverride(organizationId, { kind: 'hard', expiresAt: null, reason: 'Test', ...override });
}
