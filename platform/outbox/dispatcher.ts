import { createFairShare, type Holder, thirdOf } from '../concurrency/fair-share.ts';
import type { ServiceMetrics } from '../service-metrics.ts';
import type { OutboxCommand } from './outbox-command.ts';
import type { WorkflowGateway } from './workflow-gateway.ts';

export interface DispatcherOptions {
  workflows: Pick<WorkflowGateway, 'dispatch'>;
  metrics?: Pick<ServiceMetrics, 'temporalCalls'> | undefined;
  /**
   * Task queues whose commands, unless they are urgent, go to Temporal one at a time. After each call their dispatch rests
   * as long as the call took, so that they take at most half of a busy server's time.
   */
  pacedQueues?: readonly string[];
}

/** A command that waits for its turn. */
export interface WaitingCommand {
  organizationId: string;
  command: OutboxCommand;
  /** Part of a bounded batch, which is to end: such commands do not rest. */
  isSwept?: boolean;
}

/**
 * Calls to Temporal for one task queue that is not paced, per process. A flood of starts for one queue must not occupy the
 * server that starts the runs of the others. More calls would only queue there.
 */
const MAX_CONCURRENT_CALLS_PER_QUEUE = 4;
/** Calls for sends and signals. With few of them, sends would wait for each other while the server is slow. */
const MAX_CONCURRENT_URGENT_CALLS = 20;
/** No command rests longer after a call that was very slow or timed out. */
const MAX_REST_MS = 1_000;
/** Commands up to this priority are urgent. */
const URGENT_PRIORITY = 2;
/** A signal is one cheap call, and wakes a run for a person or a report. */
const SIGNAL_PRIORITY = 1;
/** An organization with more commands waiting for one queue rests between them. */
const MAX_WAITING_WITHOUT_REST = 10;
/** Of the time that its calls take: so the runs of its burst take at most a third of what one call after the other would start. */
const BURST_REST = 2;
/** After its last command an organization counts as one that uses Temporal, too, for this long. */
const ACTIVE_FOR_MS = 10_000;

export const priorityOf = ({ start }: OutboxCommand): number =>
  start?.priority.priorityKey ?? SIGNAL_PRIORITY;

/**
 * Dispatches commands with a limit per task queue and one for urgent ones, within which organizations take turns. A start is
 * only the beginning of what a run costs Temporal. So while others use it, too, an organization makes at most a third of
 * the calls, also if no other call waits, and rests within a burst.
 */
export function createDispatcher(options: DispatcherOptions): (waiting: WaitingCommand) => Promise<void> {
  const { workflows, metrics, pacedQueues = [] } = options;
  const lanes = new Map<string | undefined, Lane>();
  const activity = createActivity(() => performance.now());
  const limitOf = (queue: string | undefined): number => {
    if (queue === undefined) return MAX_CONCURRENT_URGENT_CALLS;
    return pacedQueues.includes(queue) ? 1 : MAX_CONCURRENT_CALLS_PER_QUEUE;
  };
  return async ({ organizationId, command, isSwept = false }) => {
    activity.note(organizationId);
    const priority = priorityOf(command);
    const queue = priority <= URGENT_PRIORITY ? undefined : command.start?.taskQueue;
    const lane = lanes.get(queue) ?? createLane(limitOf(queue), activity.hasOthers);
    lanes.set(queue, lane);
    const turn = await lane.acquire(organizationId, priority);
    const startedAt = performance.now();
    const observe = (outcome: string) =>
      metrics?.temporalCalls.observe({ outcome }, (performance.now() - startedAt) / 1_000);
    try {
      await workflows.dispatch(command);
      observe('accepted');
    } catch (error) {
      observe('failed');
      throw error;
    } finally {
      const callMs = performance.now() - startedAt;
      const isPaced = queue !== undefined && pacedQueues.includes(queue);
      const rests = queue !== undefined && !isSwept && activity.hasOthers(organizationId);
      turn.end({ laneRestMs: isPaced ? callMs : 0, burstRestMs: rests ? BURST_REST * callMs : 0 });
    }
  };
}

interface Lane {
  acquire(organizationId: string, priority: number): Promise<Turn>;
}

interface Turn {
  /** @param rests how long the lane rests, and the organization if it has a burst. */
  end(rests: { laneRestMs: number; burstRestMs: number }): void;
}

/** The calls for one queue: at most `limit` at the same time, and of each organization its share of them. */
function createLane(limit: number, hasOthers: (organizationId: string) => boolean): Lane {
  const waiting = new Map<string, number>();
  /** Of one organization: the share is its maximum while others use Temporal. */
  const own = createFairShare({
    name: 'Temporal starts of an organization',
    capacity: Number.MAX_SAFE_INTEGER,
  });
  const calls = createFairShare({ name: 'Temporal starts', capacity: limit });
  const holderOf = (id: string): Holder => ({
    kind: 'organization',
    id,
    get max() {
      return hasOthers(id) ? thirdOf(limit) : limit;
    },
  });
  return {
    async acquire(organizationId, priority) {
      const claim = { priority, holders: [holderOf(organizationId)] };
      waiting.set(organizationId, (waiting.get(organizationId) ?? 0) + 1);
      const releaseOwn = await own.acquire(claim);
      const releaseCall = await calls.acquire(claim);
      const left = (waiting.get(organizationId) ?? 1) - 1;
      if (left > 0) waiting.set(organizationId, left);
      else waiting.delete(organizationId);
      return {
        end({ laneRestMs, burstRestMs }) {
          after(laneRestMs, releaseCall);
          after(left > MAX_WAITING_WITHOUT_REST ? burstRestMs : 0, releaseOwn);
        },
      };
    },
  };
}

function after(restMs: number, release: () => void): void {
  if (restMs > 0) setTimeout(release, Math.min(restMs, MAX_REST_MS));
  else release();
}

/** Whether an organization is the only one that has given commands recently. */
function createActivity(now: () => number) {
  let latest = { organizationId: '', at: Number.NEGATIVE_INFINITY };
  /** The last command of any organization but that of `latest`. */
  let other = latest;
  return {
    note(organizationId: string): void {
      if (organizationId !== latest.organizationId) other = latest;
      latest = { organizationId, at: now() };
    },
    hasOthers(organizationId: string): boolean {
      const last = organizationId === latest.organizationId ? other : latest;
      return last.at > now() - ACTIVE_FOR_MS;
    },
  };
}
