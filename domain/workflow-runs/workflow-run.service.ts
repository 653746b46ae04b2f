import { mapConcurrently } from '../../platform/concurrency/map-concurrently.ts';
import type { Database } from '../../platform/database/database.ts';
import { invalid, notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Page } from '../../platform/pagination.ts';
import { formatFailure } from '../../platform/temporal-runs/decode-run.ts';
import {
  isOpen,
  type WorkflowRun,
  type WorkflowRunEnd,
  type WorkflowRunEvent,
  type WorkflowRuns,
} from '../../platform/temporal-runs/workflow-run.ts';
import { HELD_FAILURE } from '../../workflows/outbound/send-message.contract.ts';
import { resumePurge } from '../deletions/purge-start.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { type ActedRun, applyAction } from './apply-action.ts';
import { findOpenRecipients, type OpenRecipients } from './find-ambiguous.ts';
import { isOfService, listRuns, MAX_CONCURRENT_LOOKUPS, type RunFilter } from './list-runs.ts';
import {
  listActions,
  messageIdOf,
  planAction,
  type RunAction,
  type RunActionRequest,
  type RunEffect,
} from './plan-action.ts';
import { findSendEvidence, type SendEvidence } from './send-evidence.ts';

export interface ListedRun extends WorkflowRun {
  /** Actions that staff can take. */
  actions: RunAction[];
  /** Stage of an open run; null once the run has ended, although the index keeps the last stage. */
  stage: string | null;
  /**
   * Result of the run; null while it is open, and if it failed. `held`: it failed on purpose, so that its id can be started
   * again when its work is released.
   */
  result: string | null;
  /** Type and message of the failure, termination or timeout; otherwise null. */
  failure: string | null;
}

export interface RunDetails extends ListedRun {
  /** Current details that the run reports; null if there are none, or no worker answers. */
  currentDetails: string | null;
  /** Newest first. */
  events: WorkflowRunEvent[];
  /** For a send that waits for a decision; otherwise null. */
  evidence: SendEvidence | null;
}

export interface AcceptedAction {
  workflowId: string;
  type: string;
  action: RunAction;
  effect: RunEffect;
}

export interface WorkflowRunServiceOptions {
  database: Database;
  outbox: Outbox;
  runs: WorkflowRuns;
}

export type WorkflowRunService = ReturnType<typeof createWorkflowRunService>;

/** Stuck and waiting work, for staff. All data comes from Temporal, not from the database. */
export function createWorkflowRunService({ database, outbox, runs }: WorkflowRunServiceOptions) {
  const look = async (workflowId: string): Promise<WorkflowRun | undefined> => {
    const run = await runs.describe(workflowId);
    return run && isOfService(run) ? run : undefined;
  };
  const find = async (workflowId: string): Promise<WorkflowRun> => {
    const run = await look(workflowId);
    if (!run) throw notFound('workflow', workflowId);
    return run;
  };
  /** Only the row shows whether a purge was stopped; Temporal may no longer have the run. */
  const resumeStopped = (
    staff: StaffScope,
    {
      workflowId,
      deletionId,
      request,
    }: { workflowId: string; deletionId: string; request: RunActionRequest },
  ): Promise<AcceptedAction | null> =>
    database.staffTransaction(staff, async (transaction) => {
      const purge = await resumePurge(transaction, deletionId);
      if (!purge) return null;
      const { start, organizationId } = purge;
      const run = { workflowId, type: start.workflowType, stage: 'stopped', organizationId };
      const planned = { effect: 'started', command: { start } } as const;
      await applyAction(transaction, { outbox, staff }, { run, request, planned });
      const { workflowType: type } = start;
      return { workflowId: start.workflowId, type, action: request.action, effect: planned.effect };
    });
  const readOpenRecipients = (found: readonly WorkflowRun[]): Promise<Map<string, OpenRecipients>> => {
    const messageIds = found.flatMap((run) => messageIdOf(run) ?? []);
    if (messageIds.length === 0) return Promise.resolve(new Map());
    return database.staffTransaction(UNREQUESTED, ({ db }) => findOpenRecipients(db, messageIds));
  };
  const readEvidence = async (run: WorkflowRun): Promise<SendEvidence | null> => {
    const messageId = messageIdOf(run);
    const { OrgId: organizationId } = run.searchAttributes;
    if (messageId === undefined || organizationId === undefined) return null;
    return database.read({ organizationId }, ({ db }) => findSendEvidence(db, messageId));
  };
  const actionsOf = (run: WorkflowRun, open: Map<string, OpenRecipients>): RunAction[] =>
    listActions(run, open.get(messageIdOf(run) ?? ''));
  return {
    /**
     * A page may contain fewer runs than its limit although another page follows, if few of the examined runs match: see
     * `listRuns`.
     *
     * @throws AppError `unavailable` if Temporal does not respond; `validation_error` for a stage of runs that have ended.
     */
    async list(
      filter: RunFilter,
      page: { limit: number; after?: readonly string[] },
    ): Promise<Page<ListedRun>> {
      requireOpenForStage(filter, '/query/stage');
      const { items, next } = await listRuns(runs, filter, page);
      const open = await readOpenRecipients(items);
      const listed = await mapConcurrently(items, MAX_CONCURRENT_LOOKUPS, async (run) => ({
        ...run,
        actions: actionsOf(run, open),
        ...describeState(run, await runs.readEnd(run)),
      }));
      return { items: listed, next };
    },

    /** @throws AppError `not_found`, `unavailable`. */
    async get(workflowId: string): Promise<RunDetails> {
      const run = await find(workflowId);
      const [currentDetails, events, open, end, evidence] = await Promise.all([
        runs.currentDetails(run),
        runs.recentEvents(run),
        readOpenRecipients([run]),
        runs.readEnd(run),
        readEvidence(run),
      ]);
      return {
        ...run,
        actions: actionsOf(run, open),
        ...describeState(run, end),
        currentDetails,
        events,
        evidence,
      };
    },

    /**
     * Records the action with its reason, and sends the command to Temporal after the commit. Retrying the run of a stopped
     * purge resumes the purge with a new run, whose id is returned.
     *
     * @throws AppError `not_found`, `conflict` if the run does not allow the action, `unavailable`.
     */
    async act(staff: StaffScope, workflowId: string, request: RunActionRequest): Promise<AcceptedAction> {
      const found = await look(workflowId);
      const deletionId = request.action === 'retry' && !(found && isOpen(found)) && deletionIdOf(workflowId);
      const resumed = deletionId && (await resumeStopped(staff, { workflowId, deletionId, request }));
      if (resumed) return resumed;
      const run = found ?? (await find(workflowId));
      const planned = await planAction(run, request, {
        readStart: (closed) => runs.readStart(closed),
        findOpenRecipients: async (messageId) => (await readOpenRecipients([run])).get(messageId),
      });
      await database.staffTransaction(staff, (transaction) =>
        applyAction(transaction, { outbox, staff }, { run: toActedRun(run), request, planned }),
      );
      return { workflowId: run.workflowId, type: run.type, action: request.action, effect: planned.effect };
    },
  };
}

/** Reads are not audited, so the request has no id. */
const UNREQUESTED = { requestId: 'workflow-runs' };

const stageOf = (run: WorkflowRun): string | null =>
  isOpen(run) ? (run.searchAttributes.Stage ?? null) : null;

function describeState(
  run: WorkflowRun,
  { result, failure }: WorkflowRunEnd,
): Pick<ListedRun, 'stage' | 'result' | 'failure'> {
  return {
    stage: stageOf(run),
    result: failure?.type === HELD_FAILURE ? 'held' : result,
    failure: failure && formatFailure(failure),
  };
}

/** @throws AppError `validation_error`: the index keeps the last stage of an ended run, which is meaningless. */
export function requireOpenForStage(
  { status, stage }: Pick<RunFilter, 'status' | 'stage'>,
  path: string,
): void {
  if (stage === undefined || isOpen({ status })) return;
  throw invalid(
    path,
    'must be left out for runs that have ended: they have no stage',
    'Filter by status, type or about; the result or failure of each run says how it ended.',
  );
}

/** Deletion id in the workflow id of a purge. */
const deletionIdOf = (workflowId: string): string | undefined =>
  /^purge(?:-organization)?\/[^/]+\/(del_[^/]+)/.exec(workflowId)?.[1];

export const toActedRun = (run: WorkflowRun): ActedRun => ({
  workflowId: run.workflowId,
  type: run.type,
  stage: stageOf(run),
  organizationId: run.searchAttributes.OrgId ?? null,
});
