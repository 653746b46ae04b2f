import { createFairShare, type Holder, organizationHolder, thirdOf } from '../concurrency/fair-share.ts';
import type { ServiceMetrics } from '../service-metrics.ts';
import type { OutboxCommand } from './outbox-command.ts';
import type { WorkflowGateway } from './workflow-gateway.ts';

export interface DispatcherOptions {
  workflows: Pick<WorkflowGateway, 'dispatch'>;
  metrics?: Pick<ServiceMetrics, 'temporalCalls'> | undefined;
  /**
   * Task queues whose commands, unless they are urgent, go to Temporal one at a time for each organization. In a burst they
   * rest after each call as long as it took, also alone, so that they take at most half of a busy server's time.
   */
  pacedQueues?: readonly string[];
}

/** A command that waits for its turn. */
export interface WaitingCommand {
  organizationId: string;
  command: OutboxCommand;
  /** Set if the sweep has taken it, with what it saw of the organization. */
  swept?: Swept | undefined;
}

/**
 * The process of the sweep may not see that other organizations use Temporal, too, so it assumes that they do. Beside a flood,
 * another process dispatches commands of the same organization at the pace of a burst.
 */
export type Swept = 'alone' | 'beside_flood';

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
/**
 * An organization has a burst for a queue while more of its commands than this wait, or had their call in the last second.
 * A run keeps the processors busy after the call that starts it, so counting waiting commands alone finds a burst too late.
 */
const MAX_RECENT_WITHOUT_REST = 4;
const RECENT_MS = 1_000;
/**
 * How long a burst rests after each call, as a multiple of the call, while others use Temporal: the organization then makes
 * at most a third of the calls that it could make one after the other.
 */
const SHARED_REST = 2;
/** Beside a flood the sweep rests this much longer, so that both processes together do little more than one. */
export const BESIDE_FLOOD = 4;
/**
 * Commands of this priority belong to a replay, or to deliveries that a usage limit held. They have calls of their own, so
 * that live events do not wait for their rests.
 */
const BULK_PRIORITY = 5;
/**
 * Their rest while others use Temporal, also outside a burst: what follows a start costs several times as much as the call,
 * so that the organization takes about a third of what the server can do.
 */
const BULK_REST = 6;
/**
 * The average time of recent starts is compared with its lowest value in this period and the one before, when the server was
 * nearly idle.
 */
const COMPARED_PERIOD_MS = 300_000;
/** Of the newest start in that average. */
const WEIGHT_OF_NEWEST = 0.1;
/** The same for a paced queue while no other organization uses Temporal. */
const PACED_REST = 1;
/** After its last command an organization counts as one that uses Temporal, too, for this long. */
const ACTIVE_FOR_MS = 60_000;

export const priorityOf = ({ start }: OutboxCommand): number =>
  start?.priority.priorityKey ?? SIGNAL_PRIORITY;

/**
 * Dispatches commands with a limit per task queue and one for urgent ones, within which organizations take turns. A start is
 * only the beginning of what a run costs Temporal. So while others use it, too, an organization makes at most a third of
 * the calls, also if no other call waits, and in a burst one after the other, with rests.
 */
export function createDispatcher(options: DispatcherOptions): (waiting: WaitingCommand) => Promise<void> {
  const { workflows, metrics, pacedQueues = [] } = options;
  const lanes = new Map<string, Lane>();
  const activity = createActivity(() => performance.now());
  const pace = createPace(() => performance.now());
  const laneOf = (queue: string | undefined, isBulk: boolean): Lane => {
    const name = `${queue} ${isBulk}`;
    const limit = queue === undefined ? MAX_CONCURRENT_URGENT_CALLS : MAX_CONCURRENT_CALLS_PER_QUEUE;
    const isPaced = queue !== undefined && pacedQueues.includes(queue);
    const { hasOthers } = activity;
    const lane =
      lanes.get(name) ?? createLane({ limit, isPaced, isBulk, hasOthers, slowdown: pace.slowdown });
    lanes.set(name, lane);
    return lane;
  };
  return async ({ organizationId, command, swept }) => {
    activity.note(organizationId);
    const priority = priorityOf(command);
    const queue = priority <= URGENT_PRIORITY ? undefined : command.start?.taskQueue;
    const lane = laneOf(queue, priority >= BULK_PRIORITY);
    const end = await lane.acquire(organizationId, { priority, swept });
    const startedAt = performance.now();
    const observe = (outcome: string) =>
      metrics?.temporalCalls.observe({ outcome }, (performance.now() - startedAt) / 1_000);
    try {
      await workflows.dispatch(command);
      observe('accepted');
      if (command.start) pace.note(performance.now() - startedAt);
    } catch (error) {
      observe('failed');
      throw error;
    } finally {
      end(performance.now() - startedAt);
    }
  };
}

interface Lane {
  /** Waits for the command's turn. @returns a function that ends the turn; its argument is the duration of the call. */
  acquire(
    organizationId: string,
    command: { priority: number; swept?: Swept | undefined },
  ): Promise<(callMs: number) => void>;
}

interface LaneOptions {
  /** Calls at the same time. */
  limit: number;
  isPaced: boolean;
  isBulk: boolean;
  hasOthers: (organizationId: string) => boolean;
  slowdown: () => number;
}

/** The calls for one queue, and of each organization its share of them. */
function createLane({ limit, isPaced, isBulk, hasOthers, slowdown }: LaneOptions): Lane {
  /** Commands of each organization that wait, or had their call in the last second. */
  const recent = new Map<string, number>();
  /** Limits each organization by the maximum of its claims. A rest keeps a claim, but no call. */
  const own = createFairShare({
    name: 'Temporal starts of an organization',
    capacity: Number.MAX_SAFE_INTEGER,
  });
  const calls = createFairShare({ name: 'Temporal starts', capacity: limit });
  const hasBurst = (id: string) => (recent.get(id) ?? 0) > MAX_RECENT_WITHOUT_REST;

  function maximumOf(id: string, swept?: Swept): number {
    if (isPaced) return 1;
    if (!swept && !hasOthers(id)) return limit;
    return hasBurst(id) ? 1 : thirdOf(limit);
  }

  function restMs(id: string, swept: Swept | undefined, callMs: number): number {
    if (!isBulk && !hasBurst(id)) return 0;
    const isShared = swept !== undefined || hasOthers(id);
    const longer = swept === 'beside_flood' ? BESIDE_FLOOD : 1;
    const sharedRest = (isBulk ? BULK_REST : SHARED_REST) * slowdown() * longer;
    const rest = isShared ? sharedRest : isPaced ? PACED_REST : 0;
    return Math.min(rest * callMs, MAX_REST_MS);
  }

  function count(id: string, change: 1 | -1): void {
    const total = (recent.get(id) ?? 0) + change;
    if (total > 0) recent.set(id, total);
    else recent.delete(id);
  }

  return {
    async acquire(id, { priority, swept }) {
      const holder: Holder = {
        ...organizationHolder(id),
        get max() {
          return maximumOf(id, swept);
        },
      };
      count(id, 1);
      const releaseOwn = await own.acquire({ priority, holders: [holder] });
      const releaseCall = await calls.acquire({ priority, holders: [organizationHolder(id)] });
      setTimeout(() => count(id, -1), RECENT_MS).unref();
      return (callMs) => {
        releaseCall();
        const rest = restMs(id, swept, callMs);
        if (rest > 0) setTimeout(releaseOwn, rest);
        else releaseOwn();
      };
    },
  };
}

/** How busy the server is, by the time that starts take. */
function createPace(now: () => number) {
  let average: number | undefined;
  let [lowest, formerLowest] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  let startedAt = now();
  return {
    note(callMs: number): void {
      average = average === undefined ? callMs : average + WEIGHT_OF_NEWEST * (callMs - average);
      if (now() - startedAt > COMPARED_PERIOD_MS) {
        [lowest, formerLowest] = [Number.POSITIVE_INFINITY, lowest];
        startedAt = now();
      }
      lowest = Math.min(lowest, average);
    },
    /** How many times as long starts take now as when the server was nearly idle. */
    slowdown: () => (average === undefined ? 1 : average / Math.min(lowest, formerLowest)),
  };
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
