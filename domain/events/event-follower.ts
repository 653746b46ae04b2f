import type { Event } from './event.entity.ts';
import { type FeedPosition, positionOf } from './event-feed.ts';
import type { FeedPage, Tail } from './event-tail.ts';

export interface Follower {
  /** All matching events up to this position were returned. Resuming from here skips none and repeats none. */
  readonly position: FeedPosition;
  /** Resolves with the next events, or with none after `waitMs` or when closed. Call again only after it resolves. */
  next(waitMs: number): Promise<readonly Event[]>;
  close(): void;
}

export interface FollowerOptions {
  tail: Tail;
  /** Reads matching events from before the tail's position. */
  read(after: FeedPosition): Promise<FeedPage>;
  /** Whether an event of the tail matches the follower's filter. */
  matches(event: Event): boolean;
  after: FeedPosition;
}

/** Maximum number of events queued for a slow follower. Beyond that, it reads pages at its own pace again. */
const MAX_QUEUED = 100;

/**
 * Returns the events after one follower's position: reads its own pages until it has caught up with the tail, then takes
 * what the tail pushes.
 */
export function createFollower({ tail, read, matches, after }: FollowerOptions): Follower {
  let deliveredTo = after;
  /** While true, the tail pushes new events into the queue. */
  let caughtUp = false;
  let queue: Event[] = [];
  /** Position after the queued events. */
  let queuedTo = after;
  let closed = false;
  /** A wake-up arrived while no call was waiting. */
  let signaled = false;
  let resume: (() => void) | undefined;

  const leave = tail.join({
    push(events, position) {
      if (!caughtUp) return wake();
      const matching = events.filter((event) => positionOf(event) > queuedTo && matches(event));
      if (position > queuedTo) queuedTo = position;
      queue.push(...matching);
      if (queue.length > MAX_QUEUED) {
        queue = [];
        caughtUp = false;
      }
      if (matching.length > 0) wake();
    },
    close,
  });

  function wake(): void {
    signaled = true;
    resume?.();
  }

  function close(): void {
    closed = true;
    queue = [];
    leave();
    wake();
  }

  async function waitForWake(waitMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, waitMs);
    resume = resolve;
    if (!signaled) await promise;
    clearTimeout(timer);
    resume = undefined;
    signaled = false;
  }

  /** Reads the events between the follower and the tail. Empty if it has caught up or the tail has no position yet. */
  async function catchUp(): Promise<readonly Event[]> {
    while (!closed) {
      const page = await read(deliveredTo);
      deliveredTo = page.position;
      // No await between comparison and assignment: an event pushed in between would be lost.
      if (!page.full && tail.position !== undefined && deliveredTo >= tail.position) {
        caughtUp = true;
        queuedTo = deliveredTo;
      }
      if (page.events.length > 0 || caughtUp || tail.position === undefined) return page.events;
    }
    return [];
  }

  return {
    get position() {
      return deliveredTo;
    },
    async next(waitMs) {
      const deadline = performance.now() + waitMs;
      while (!closed) {
        if (!caughtUp) {
          const events = await catchUp();
          if (events.length > 0) return events;
        }
        if (queue.length > 0 || caughtUp) {
          const events = queue;
          queue = [];
          deliveredTo = queuedTo;
          if (events.length > 0) return events;
        }
        const leftMs = deadline - performance.now();
        if (closed || leftMs <= 0) break;
        await waitForWake(leftMs);
      }
      return [];
    },
    close,
  };
}
