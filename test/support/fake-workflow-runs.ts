import { randomUUID } from 'node:crypto';
import { AppError } from '../../platform/errors.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import type {
  WorkflowRun,
  WorkflowRunEnd,
  WorkflowRunEvent,
  WorkflowRunFilter,
  WorkflowRuns,
} from '../../platform/temporal-runs/workflow-run.ts';

const idsOf = ({ searchAttributes: { ResourceId, RelatedId, InboxId, RequestId } }: WorkflowRun) => [
  ResourceId,
  RelatedId,
  InboxId,
  RequestId,
];

/** Temporal, as staff see it: runs in memory, in order of their start. */
export class FakeWorkflowRuns implements WorkflowRuns {
  readonly #runs: WorkflowRun[] = [];
  isAvailable = true;
  events: WorkflowRunEvent[] = [];
  details: string | null = null;

  add(run: Partial<WorkflowRun> & Pick<WorkflowRun, 'workflowId' | 'type'>): WorkflowRun {
    const added: WorkflowRun = {
      runId: randomUUID(),
      status: 'running',
      startedAt: new Date(),
      closedAt: null,
      taskQueue: 'outbound',
      historyLength: 11,
      searchAttributes: {},
      summary: null,
      pendingActivities: [],
      canceledAs: null,
      ...run,
    };
    this.#runs.unshift(added);
    return added;
  }

  async list(filter: WorkflowRunFilter, { limit, token }: { limit: number; token?: string | undefined }) {
    this.#check();
    const from = Number(token ?? 0);
    const found = this.#runs.filter((run) => this.#matches(run, filter));
    return {
      runs: found.slice(from, from + limit),
      nextToken: from + limit < found.length ? String(from + limit) : null,
    };
  }

  async describe(workflowId: string, runId?: string): Promise<WorkflowRun | undefined> {
    this.#check();
    return this.#runs.find(
      (run) => run.workflowId === workflowId && (runId === undefined || run.runId === runId),
    );
  }

  async recentEvents(): Promise<WorkflowRunEvent[]> {
    return this.events;
  }

  /** By run id: how those that have ended did. */
  readonly ends = new Map<string, WorkflowRunEnd>();

  async readEnd({ runId }: WorkflowRun): Promise<WorkflowRunEnd> {
    return this.ends.get(runId) ?? { result: null, failure: null };
  }

  async currentDetails(): Promise<string | null> {
    return this.details;
  }

  async readStart({ workflowId }: Pick<WorkflowRun, 'workflowId'>): Promise<StartCommand> {
    const run = await this.describe(workflowId);
    return {
      workflowType: run?.type ?? '',
      workflowId,
      taskQueue: run?.taskQueue ?? '',
      input: { from: 'history' },
      searchAttributes: run?.searchAttributes ?? {},
      summary: run?.summary ?? '',
      priority: { priorityKey: 3, fairnessKey: '' },
    };
  }

  #matches(run: WorkflowRun, filter: WorkflowRunFilter): boolean {
    return (
      run.status === filter.status &&
      (filter.type === undefined || run.type === filter.type) &&
      run.type !== filter.exceptType &&
      (filter.stage === undefined || run.searchAttributes.Stage === filter.stage) &&
      (filter.organizationId === undefined || run.searchAttributes.OrgId === filter.organizationId) &&
      (filter.workflowId === undefined || run.workflowId === filter.workflowId) &&
      (filter.about === undefined || idsOf(run).includes(filter.about)) &&
      (filter.startedBefore === undefined || run.startedAt <= filter.startedBefore)
    );
  }

  #check(): void {
    if (!this.isAvailable)
      throw new AppError('unavailable', { detail: 'Temporal did not answer in time.', fix: 'Repeat it.' });
  }
}
