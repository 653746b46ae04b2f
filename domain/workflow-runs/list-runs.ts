import { mapConcurrently } from '../../platform/concurrency/map-concurrently.ts';
import type { Page } from '../../platform/pagination.ts';
import {
  hasPausedActivity,
  type WorkflowRun,
  type WorkflowRunFilter,
  type WorkflowRuns,
} from '../../platform/temporal-runs/workflow-run.ts';
import { TRACK_DELIVERY } from '../../workflows/outbound/track-delivery.contract.ts';

export interface RunFilter extends WorkflowRunFilter {
  /** Only runs whose activity has failed and is retried or is paused, or that wait for a person. */
  failing: boolean;
}

export const MAX_CONCURRENT_LOOKUPS = 10;
/**
 * Maximum number of runs that one call examines. Temporal's index does not contain failing activities, so rare failures are
 * found run by run.
 */
const MAX_EXAMINED_RUNS = 500;
/** Minimum page size for the index. Larger than a small page of the list, because few of many runs may be failing. */
const MIN_INDEX_PAGE = 25;

/** Where a page ends: after a run within a page of the index, or at the start of a page. */
interface Position {
  token: string | undefined;
  /** Runs per page of the index; a token is valid for one size. */
  size: number;
  last?: Pick<WorkflowRun, 'runId' | 'startedAt'>;
}

/**
 * Lists runs, newest first. A page is full unless {@link MAX_EXAMINED_RUNS} runs were examined. Then it is shorter, perhaps
 * empty, and its position continues after the examined runs.
 */
export async function listRuns(
  runs: Pick<WorkflowRuns, 'list' | 'describe'>,
  filter: RunFilter,
  { limit, after }: { limit: number; after?: readonly string[] },
): Promise<Page<WorkflowRun>> {
  const items: WorkflowRun[] = [];
  let position = after
    ? decodePosition(after)
    : { token: undefined, size: filter.failing ? Math.max(limit, MIN_INDEX_PAGE) : limit };
  for (let examined = 0; ; ) {
    const { token, size, last } = position;
    const listed = await runs.list(toIndexFilter(filter), { limit: size, token });
    examined += size;
    const found = skipPrevious(await describeAll(runs, listed.runs), last).filter((run) =>
      matches(run, filter),
    );
    const taken = found.slice(0, limit - items.length);
    items.push(...taken);
    const end = taken.at(-1);
    if (end && taken.length < found.length)
      return { items, next: encodePosition({ token, size, last: end }) };
    if (listed.nextToken === null) return { items, next: null };
    position = { token: listed.nextToken, size };
    if (items.length === limit || examined >= MAX_EXAMINED_RUNS)
      return { items, next: encodePosition(position) };
  }
}

/**
 * The filter for the index. The index does not know which runs fail, so the filter excludes types that never fail: nearly
 * all open runs wait for delivery reports.
 */
export const toIndexFilter = <F extends RunFilter>(filter: F): F & WorkflowRunFilter =>
  filter.failing && filter.type === undefined ? { ...filter, exceptType: TRACK_DELIVERY } : filter;

/** Skips the runs of the previous page. If its last run has closed meanwhile, the order by start decides. */
function skipPrevious(page: WorkflowRun[], last: Position['last']): WorkflowRun[] {
  if (!last) return page;
  const index = page.findIndex(({ runId }) => runId === last.runId);
  return index === -1 ? page.filter(({ startedAt }) => startedAt <= last.startedAt) : page.slice(index + 1);
}

function encodePosition({ token = '', size, last }: Position): string[] {
  return [token, String(size), ...(last ? [last.runId, last.startedAt.toISOString()] : [])];
}

function decodePosition([token, size, runId, startedAt = '']: readonly string[]): Position {
  return {
    token: token === '' ? undefined : token,
    size: Number(size),
    ...(runId === undefined ? {} : { last: { runId, startedAt: new Date(startedAt) } }),
  };
}

/** Excludes Temporal's own workflows, such as schedules. Canceling or terminating one would delete the schedule. */
export const isOfService = ({ type }: WorkflowRun): boolean => !type.startsWith('temporal-sys-');

/** Describes the runs, because the index lags behind and does not contain their activities. */
export async function describeAll(
  runs: Pick<WorkflowRuns, 'describe'>,
  listed: readonly { workflowId: string; runId: string }[],
): Promise<WorkflowRun[]> {
  const described = await mapConcurrently(listed, MAX_CONCURRENT_LOOKUPS, ({ workflowId, runId }) =>
    runs.describe(workflowId, runId),
  );
  return described.filter((run) => run !== undefined).filter(isOfService);
}

/** Whether a run that the index returned still matches. */
export function matches(run: WorkflowRun, { status, stage, failing }: RunFilter): boolean {
  const { Stage } = run.searchAttributes;
  if (run.status !== status || (stage !== undefined && Stage !== stage)) return false;
  return (
    !failing ||
    Stage === 'needs_attention' ||
    hasPausedActivity(run) ||
    run.pendingActivities.some(({ lastFailure }) => lastFailure !== null)
  );
}
