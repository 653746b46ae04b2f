import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  APPLY_RETENTION,
  applyRetentionWorkflowId,
} from '../../workflows/retention/apply-retention.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { ChangeOf } from '../audit/audit-actions.ts';
import { recordAudit, replacedValues } from '../audit/record-audit.ts';
import { isOrganizationWide, type Scope } from '../identity/scope.ts';
import { changeRetention, firstDeletionAt, postponeRetention } from './retention-plan.ts';
import { type RetentionPolicy, RetentionPolicyEntity } from './retention-policy.entity.ts';

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

export type RetentionPolicyService = ReturnType<typeof createRetentionPolicyService>;

export function createRetentionPolicyService({
  database,
  outbox,
  now = () => new Date(),
}: {
  database: Database;
  outbox: Pick<Outbox, 'enqueue'>;
  now?: () => Date;
}) {
  return {
    /** @throws AppError `not_found` for another organization. */
    get: (scope: Scope, organizationId: string): Promise<RetentionPolicyDetails> => {
      requireOwnOrganization(scope, organizationId);
      return database.read(scope, async ({ db }) => {
        const policy = await db
          .selectFrom('retention_policies')
          .select(columnsOf(RetentionPolicyEntity))
          .where('org_id', '=', organizationId)
          .executeTakeFirst();
        return toDetails(policy, now());
      });
    },

    /**
     * Sets how many days messages are kept. A shorter period takes effect after seven days, and the owners are
     * notified; a longer one takes effect immediately. Setting the same value again changes nothing.
     *
     * @param days 0: forever.
     * @throws AppError `not_found`; `permission_denied` for a credential bound to an environment or inbox.
     */
    set: async (scope: Scope, organizationId: string, days: number): Promise<RetentionPolicyDetails> => {
      requireWholeOrganization(scope, organizationId);
      return database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        await ensurePolicy(db, organizationId, now());
        const policy = await lockPolicy(db, organizationId);
        const before = { retention_days: policy?.retentionDays ?? null };
        if (policy && changeRetention(policy, days, now())) {
          await savePolicy(db, policy);
          if (policy.steps.some(isPending))
            outbox.enqueue(transaction, organizationId, {
              start: buildRetentionStart(organizationId, `change-${policy.version}`),
            });
        }
        const change = { retention_days: days };
        await audit(db, scope, 'updated', { ...change, ...replacedValues(before, change) });
        return toDetails(policy, now());
      });
    },

    /**
     * Postpones deletion by `days` days. A running deletion ends after its current batch.
     *
     * @throws AppError `not_found`, `permission_denied`; `conflict` if there is nothing to postpone.
     */
    postpone: async (scope: Scope, organizationId: string, days: number): Promise<RetentionPolicyDetails> => {
      requireWholeOrganization(scope, organizationId);
      return database.transaction(scope, async ({ db }) => {
        const policy = await lockPolicy(db, organizationId);
        if (!policy || !postponeRetention(policy, days, now())) throw nothingToPostponeError();
        await savePolicy(db, policy);
        await audit(db, scope, 'postponed', { days });
        return toDetails(policy, now());
      });
    },
  };
}

function audit(
  db: Db,
  scope: Scope,
  change: ChangeOf<'retention_policy'>,
  details: Record<string, unknown>,
): Promise<void> {
  return recordAudit(db, scope, {
    action: `retention_policy.${change}`,
    resourceType: 'organization',
    resourceId: scope.organizationId,
    details,
  });
}

const isPending = ({ announcedAt }: RetentionPolicy['steps'][number]) => announcedAt === null;

/** @returns a copy to change, which {@link savePolicy} stores. */
export async function lockPolicy(db: Db, organizationId: string): Promise<RetentionPolicy | undefined> {
  const policy = await db
    .selectFrom('retention_policies')
    .select(columnsOf(RetentionPolicyEntity))
    .where('org_id', '=', organizationId)
    .forUpdate()
    .executeTakeFirst();
  return policy && { ...policy };
}

export async function savePolicy(db: Db, policy: RetentionPolicy): Promise<void> {
  await db
    .updateTable('retention_policies')
    .set({
      retention_days: policy.retentionDays,
      applied_days: policy.appliedDays,
      applied_since: policy.appliedSince,
      steps: json(policy.steps),
      postponed_until: policy.postponedUntil,
      resume_warned_at: policy.resumeWarnedAt,
      reminded_at: policy.remindedAt,
      version: policy.version,
      changed_at: policy.changedAt,
    })
    .where('org_id', '=', policy.organizationId)
    .execute();
}

/** Inserts a missing row, so that concurrent first changes serialize on its lock. */
async function ensurePolicy(db: Db, organizationId: string, at: Date): Promise<void> {
  await db
    .insertInto('retention_policies')
    .values({ org_id: organizationId, steps: json([]), changed_at: at, created_at: at })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

function toDetails(policy: Readonly<RetentionPolicy> | undefined, now: Date): RetentionPolicyDetails {
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
    fix: 'Nothing is left to do. Deletion starts only once the organization has set how long messages are kept (retention_days).',
  });
}

/** Starts a daily run, or the run that announces a policy change. */
export function buildRetentionStart(organizationId: string, occasion: string): StartCommand {
  return {
    workflowType: APPLY_RETENTION,
    workflowId: applyRetentionWorkflowId(organizationId, occasion),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.default, fairnessKey: organizationId },
    input: { organizationId },
    searchAttributes: { OrgId: organizationId, ResourceId: organizationId, Stage: 'reviewing' },
    summary: `Retention for ${organizationId}, ${occasion}`,
  };
}
