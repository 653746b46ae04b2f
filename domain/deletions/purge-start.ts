import { sql } from 'kysely';
import type { Transaction } from '../../platform/database/database.ts';
import type { SignalCommand, StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  CANCEL_PURGE,
  PURGE_ACCOUNT,
  PURGE_ORGANIZATION,
  type PurgeRun,
  purgeAccountWorkflowId,
  purgeOrganizationWorkflowId,
} from '../../workflows/deletions/purge.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { DeletionKind, DeletionStatus } from './deletion.entity.ts';

type Run = PurgeRun & { kind: DeletionKind };

const workflowIdOf = (run: Run): string =>
  run.kind === 'account' ? purgeAccountWorkflowId(run) : purgeOrganizationWorkflowId(run);

/** Starts the run that waits for the end of the recovery period and then purges. */
export function buildPurgeStart(run: Run & { dueAt: Date }): StartCommand {
  const { kind, subjectId, deletionId, dueAt } = run;
  const due = dueAt.toISOString();
  return {
    workflowType: kind === 'account' ? PURGE_ACCOUNT : PURGE_ORGANIZATION,
    workflowId: workflowIdOf(run),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.default, fairnessKey: subjectId },
    input: { deletionId, dueAt: due, ...(kind === 'organization' ? { expiresCheckout: true } : {}) },
    searchAttributes: {
      ...(kind === 'organization' ? { OrgId: subjectId } : {}),
      ResourceId: subjectId,
      RelatedId: deletionId,
      Stage: 'waiting',
    },
    summary: `Purge ${subjectId} on ${due.slice(0, 16)}Z unless it is recovered`,
  };
}

/** Ends the run of a recovered deletion. */
export function buildPurgeCancel(run: Run): SignalCommand {
  return { workflowId: workflowIdOf(run), signalName: CANCEL_PURGE, args: [] };
}

export interface ResumedPurge {
  /** Starts the new run, which continues where the old one ended. */
  start: StartCommand;
  /** Null for an account. */
  organizationId: string | null;
}

/**
 * Resumes the purge of an account or organization that an operator stopped, in the caller's transaction. Also for staff.
 *
 * @returns null unless it was stopped.
 */
export async function resumePurge({ db }: Transaction, deletionId: string): Promise<ResumedPurge | null> {
  const deletion = await db
    .updateTable('deletions')
    .set((eb) => ({
      status: sql<DeletionStatus>`case when purge_started_at is null then 'waiting' else 'purging' end`,
      ended_at: null,
      reconciled_at: null,
      generation: eb('generation', '+', 1),
    }))
    .where('id', '=', deletionId)
    .where('status', '=', 'stopped')
    .returning(['id as deletionId', 'kind', 'subject_id as subjectId', 'generation', 'due_at as dueAt'])
    .executeTakeFirst();
  if (!deletion) return null;
  return {
    start: buildPurgeStart(deletion),
    organizationId: deletion.kind === 'organization' ? deletion.subjectId : null,
  };
}
