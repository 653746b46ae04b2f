import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Scope } from '../identity/scope.ts';
import { firstDeletionAt, planRetention, postponeRetention } from './retention-plan.ts';
import { type RetentionPolicy, RetentionPolicyEntity } from './retention-policy.entity.ts';
import { startOfRetention } from './retention-start.ts';

/** A policy as people speak of it. */
export interface RetentionFacts {
  /** As it was set; 0 keeps. */
  retentionDays: number;
  /** What is deleted now, while a shorter period waits. */
  effectiveDays: number;
  /** When something is deleted for the first time that is kept until now; empty where nothing waits. */
  firstDeletionAt: Date | null;
  postponedUntil: Date | null;
  /** Empty where nobody ever set one. */
  updatedAt: Date | null;
}

export interface RetentionPolicyService {
  /** @throws AppError `not_found` for another organization. */
  get(scope: Scope, organizationId: string): Promise<RetentionFacts>;
  /**
   * Sets how many days mail is kept. What deletes more than before waits seven days, and the owners are told; what
   * deletes less holds at once. The same value again changes nothing.
   *
   * @param days 0: for ever.
   * @throws AppError `not_found`; `permission_denied` for a credential that is not the whole organization's.
   */
  set(scope: Scope, organizationId: string, days: number): Promise<RetentionFacts>;
  /**
   * Deletes nothing for `days` days more. A deletion under way ends after its batch.
   *
   * @throws AppError `not_found`, `permission_denied`; `conflict` where nothing is deleted anyway.
   */
  postpone(scope: Scope, organizationId: string, days: number): Promise<RetentionFacts>;
}

export function createRetentionPolicyService({
  database,
  outbox,
  now = () => new Date(),
}: {
  database: Database;
  outbox: Pick<Outbox, 'enqueue'>;
  now?: () => Date;
}): RetentionPolicyService {
  return {
    get: (scope, organizationId) => {
      requireOwn(scope, organizationId);
      return database.transaction(scope, async ({ em }) =>
        factsOf(await em.findOne(RetentionPolicyEntity, { organizationId }), now()),
      );
    },

    set: async (scope, organizationId, days) => {
      requireWhole(scope, organizationId);
      return database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        await makePolicy(em, organizationId, now());
        const policy = await lockPolicy(em, organizationId);
        if (policy && planRetention(policy, days, now()) && policy.steps.some(isUntold))
          outbox.enqueue(transaction, organizationId, {
            start: startOfRetention(organizationId, `change-${policy.version}`),
          });
        return factsOf(policy, now());
      });
    },

    postpone: async (scope, organizationId, days) => {
      requireWhole(scope, organizationId);
      return database.transaction(scope, async ({ em }) => {
        const policy = await lockPolicy(em, organizationId);
        if (!policy || !postponeRetention(policy, days, now())) throw nothingToPostpone();
        return factsOf(policy, now());
      });
    },
  };
}

const isUntold = ({ announcedAt }: RetentionPolicy['steps'][number]) => announcedAt === null;

export function lockPolicy(em: EntityManager, organizationId: string): Promise<RetentionPolicy | null> {
  return em.findOne(RetentionPolicyEntity, { organizationId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
}

/** Where there is none yet: two who set the first one then wait for one another at its row. */
async function makePolicy(em: EntityManager, organizationId: string, at: Date): Promise<void> {
  await em.execute(
    `insert into retention_policies (org_id, steps, changed_at, created_at) values (?, '[]', ?, ?)
     on conflict do nothing`,
    [organizationId, at, at],
  );
}

function factsOf(policy: RetentionPolicy | null, now: Date): RetentionFacts {
  const next = policy?.steps[0];
  const { postponedUntil = null } = policy ?? {};
  return {
    retentionDays: policy?.retentionDays ?? 0,
    effectiveDays: policy?.appliedDays ?? 0,
    firstDeletionAt: policy && next ? firstDeletionAt(policy, next) : null,
    postponedUntil: postponedUntil && postponedUntil > now ? postponedUntil : null,
    updatedAt: policy && policy.version > 0 ? policy.changedAt : null,
  };
}

function requireOwn({ organizationId: own }: Scope, organizationId: string): void {
  if (organizationId !== own) throw notFound('organization', organizationId);
}

/** Mail of every environment goes by the policy: who was given a part of them does not decide on it. */
function requireWhole(scope: Scope, organizationId: string): void {
  requireOwn(scope, organizationId);
  if (!scope.environmentBound && scope.inboxId === undefined) return;
  throw new AppError('permission_denied', {
    detail: 'The retention policy is the whole organization’s; this credential is bound to a part of it.',
    fix: 'Use a key of the organization that is bound to no environment or inbox.',
    extensions: { permission: 'retention:manage' },
  });
}

function nothingToPostpone(): AppError {
  return new AppError('conflict', {
    detail: 'No mail is deleted and none is going to be: there is nothing to postpone.',
    fix: 'Nothing; set retention_days first if mail is to be deleted at all.',
  });
}
