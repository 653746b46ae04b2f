import { LockMode, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { findRow, type Row } from '../../platform/database/find-rows.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { isOrganizationWide, type Scope } from '../identity/scope.ts';
import { changeRetention, firstDeletionAt, postponeRetention } from './retention-plan.ts';
import { type RetentionPolicy, RetentionPolicyEntity } from './retention-policy.entity.ts';
import { buildRetentionStart } from './retention-start.ts';

/** A policy as the API shows it. */
export interface RetentionPolicyDetails {
  /** The period as set; 0: forever. */
  retentionDays: number;
  /** The period in effect; differs while a shorter one is pending. */
  effectiveDays: number;
  /** When the pending period first deletes something; null if none is pending. */
  firstDeletionAt: Date | null;
  postponedUntil: Date | null;
  /** Null if the policy was never set. */
  updatedAt: Date | null;
}

export interface RetentionPolicyService {
  /** @throws AppError `not_found` for another organization. */
  get(scope: Scope, organizationId: string): Promise<RetentionPolicyDetails>;
  /**
   * Sets how many days messages are kept. A shorter period takes effect after seven days, and the owners are
   * notified; a longer one takes effect immediately. Setting the same value again changes nothing.
   *
   * @param days 0: forever.
   * @throws AppError `not_found`; `permission_denied` for a credential bound to an environment or inbox.
   */
  set(scope: Scope, organizationId: string, days: number): Promise<RetentionPolicyDetails>;
  /**
   * Postpones deletion by `days` days. A running deletion ends after its current batch.
   *
   * @throws AppError `not_found`, `permission_denied`; `conflict` if there is nothing to postpone.
   */
  postpone(scope: Scope, organizationId: string, days: number): Promise<RetentionPolicyDetails>;
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
      requireOwnOrganization(scope, organizationId);
      return database.read(scope, async (reader) =>
        toDetails(
          (await findRow(reader, RetentionPolicyEntity, { where: { organizationId } })) ?? null,
          now(),
        ),
      );
    },

    set: async (scope, organizationId, days) => {
      requireWholeOrganization(scope, organizationId);
      return database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        await ensurePolicy(em, organizationId, now());
        const policy = await lockPolicy(em, organizationId);
        if (policy && changeRetention(policy, days, now()) && policy.steps.some(isPending))
          outbox.enqueue(transaction, organizationId, {
            start: buildRetentionStart(organizationId, `change-${policy.version}`),
          });
        await audit(em, scope, 'updated', { retention_days: days });
        return toDetails(policy, now());
      });
    },

    postpone: async (scope, organizationId, days) => {
      requireWholeOrganization(scope, organizationId);
      return database.transaction(scope, async ({ em }) => {
        const policy = await lockPolicy(em, organizationId);
        if (!policy || !postponeRetention(policy, days, now())) throw nothingToPostponeError();
        await audit(em, scope, 'postponed', { days });
        return toDetails(policy, now());
      });
    },
  };
}

function audit(
  em: EntityManager,
  scope: Scope,
  change: string,
  details: Record<string, unknown>,
): Promise<void> {
  return recordAudit(em, scope, {
    action: `retention_policy.${change}`,
    resourceType: 'organization',
    resourceId: scope.organizationId,
    details,
  });
}

const isPending = ({ announcedAt }: RetentionPolicy['steps'][number]) => announcedAt === null;

export function lockPolicy(em: EntityManager, organizationId: string): Promise<RetentionPolicy | null> {
  return em.findOne(RetentionPolicyEntity, { organizationId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
}

/** Inserts a missing row, so that concurrent first changes serialize on its lock. */
async function ensurePolicy(em: EntityManager, organizationId: string, at: Date): Promise<void> {
  await em.execute(
    sql`insert into retention_policies (org_id, steps, changed_at, created_at) values (${organizationId}, '[]', ${at}, ${at})
     on conflict do nothing`,
  );
}

function toDetails(policy: Row<RetentionPolicy> | null, now: Date): RetentionPolicyDetails {
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

function requireOwnOrganization({ organizationId: own }: Scope, organizationId: string): void {
  if (organizationId !== own) throw notFound('organization', organizationId);
}

/** The policy covers every environment, so a credential bound to a part of the organization must not change it. */
function requireWholeOrganization(scope: Scope, organizationId: string): void {
  requireOwnOrganization(scope, organizationId);
  if (isOrganizationWide(scope)) return;
  throw new AppError('permission_denied', {
    detail:
      'The retention policy applies to the whole organization, but this credential is bound to an environment or inbox.',
    fix: 'Use an API key that is bound to no environment and no inbox.',
    extensions: { permission: 'retention:manage' },
  });
}

function nothingToPostponeError(): AppError {
  return new AppError('conflict', {
    detail: 'No deletion is active or scheduled, so there is nothing to postpone.',
    fix: 'No action is needed. Deletion starts only after retention_days is set.',
  });
}
