import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.ts';
import type { EventSignals } from '../../platform/event-signals.ts';
import { createSemaphore } from '../../platform/semaphore.ts';
import type { Scope } from '../identity/scope.ts';
import type { Event } from './event.entity.ts';
import { type FeedPosition, getFeedEnd, positionOf, readEvents } from './event-feed.ts';
import { type EventType, MAX_EVENT_BYTES } from './event-types.ts';

/** Events as they come, to whoever follows: live streams, and calls that wait for a message. */
export interface EventStreams {
  /**
   * Follows the events the scope may see, in the order of the feed.
   *
   * `wanted.after`: begin behind it; empty: with what happens from now on.
   */
  follow(scope: Scope, wanted: FollowOptions): Promise<Follower>;
  /** Ends every follower, then the connection that wakes them. */
  close(): Promise<void>;
}

export interface FollowOptions {
  after?: FeedPosition | undefined;
  types?: readonly EventType[] | undefined;
  inboxIds?: readonly string[] | undefined;
  /** Recorded at or after this time. */
  since?: Date | undefined;
}

export interface Follower {
  /** All wanted events up to here were given: reading on from here misses and repeats none. */
  readonly position: FeedPosition;
  /** The next events, as soon as there are some; none after `waitMs`, or when closed. Ask again only then. */
  next(waitMs: number): Promise<readonly Event[]>;
  close(): void;
}

export interface EventStreamsOptions {
  database: Database;
  signals: Pick<EventSignals, 'subscribe' | 'close'>;
  logger: Logger;
}

const PAGE_SIZE = 50;
/** A page holds one event more at most: what a follower whose reader takes nothing costs. */
const PAGE_BYTES = MAX_EVENT_BYTES;
/** What a slow follower may have waiting; beyond it, it reads for itself what it has the time for. */
const MAX_QUEUED = 100;
/** Reads under way in this process, so that a poll of many environments leaves connections to requests. */
const MAX_CONCURRENT_READS = 4;
const FIRST_RETRY_MS = 20;
const MAX_RETRY_MS = 1_000;

/**
 * Followers of one environment share one reader, its tail: a signal costs one read however many follow, and an idle
 * follower costs none. Who comes from further back reads for itself until it has caught up with the tail, and so does
 * who is too slow for it; memory holds at most {@link MAX_QUEUED} events a follower, and those are the tail's own.
 */
export function createEventStreams({ database, signals, logger }: EventStreamsOptions): EventStreams {
  const tails = new Map<string, Tail>();
  const reads = createSemaphore(MAX_CONCURRENT_READS);

  const read = async (scope: TailScope, wanted: FollowOptions, after: FeedPosition): Promise<FeedPage> => {
    const giveBack = await reads.acquire();
    try {
      return await readPage(database, scope, { ...wanted, after });
    } finally {
      giveBack();
    }
  };

  function getTail({ organizationId, environmentId }: Scope): Tail {
    let tail = tails.get(environmentId);
    if (!tail) {
      const scope = { organizationId, environmentId };
      const unsubscribe = [organizationId, environmentId].map((topic) =>
        signals.subscribe(topic, () => tails.get(environmentId)?.poll()),
      );
      tail = createTail({
        read: (after) => read(scope, {}, after),
        getStart: () => database.transaction(scope, ({ em }) => getFeedEnd(em)),
        onEmpty: () => {
          for (const end of unsubscribe) end();
          tails.delete(environmentId);
        },
        logger,
      });
      tails.set(environmentId, tail);
    }
    return tail;
  }

  return {
    async follow(scope, wanted) {
      const { organizationId, environmentId, inboxId } = scope;
      const end = await database.transaction({ organizationId }, ({ em }) => getFeedEnd(em));
      return createFollower({
        tail: getTail(scope),
        read: (after) => read({ organizationId, environmentId, inboxId }, wanted, after),
        wants: buildFilter(scope, wanted),
        // Beyond the end lies an event that does not show yet, or a position of another database.
        after: wanted.after !== undefined && wanted.after < end ? wanted.after : end,
      });
    },
    async close() {
      for (const tail of tails.values()) tail.end();
      await signals.close();
    },
  };
}

type TailScope = Pick<Scope, 'organizationId' | 'environmentId' | 'inboxId'>;

interface FeedPage {
  events: readonly Event[];
  /** All up to here was looked at. */
  position: FeedPosition;
  /** There may be more behind it. */
  full: boolean;
  /** Some events are committed and may not show yet, as an older transaction is open: nobody signals its end. */
  heldBack: boolean;
}

async function readPage(database: Database, scope: TailScope, wanted: FollowOptions): Promise<FeedPage> {
  return database.transaction({ organizationId: scope.organizationId }, async ({ em }) => {
    // Before the events, whose statement sees no less than this one.
    const end = await getFeedEnd(em);
    const [held] = await em.execute<{ back: boolean }[]>(
      `select exists (select 1 from events where env_id = ? and transaction_id >= pg_snapshot_xmin(pg_current_snapshot()))
           or exists (select 1 from events where org_id = ? and inbox_id is null
                      and transaction_id >= pg_snapshot_xmin(pg_current_snapshot())) as back`,
      [scope.environmentId, scope.organizationId],
    );
    const { events, truncated } = await readEvents(em, scope, {
      ...wanted,
      limit: PAGE_SIZE,
      maxBytes: PAGE_BYTES,
    });
    const last = events.at(-1);
    const full = truncated || events.length === PAGE_SIZE;
    const read = last ? positionOf(last) : end;
    return { events, position: full || read > end ? read : end, full, heldBack: held?.back ?? false };
  });
}

interface Tail {
  /** Empty until the first look. */
  readonly position: FeedPosition | undefined;
  /** Reads what is new, now or right after the read under way. */
  poll(): void;
  /** @returns takes the follower away; with the last one the tail ends. */
  join(follower: TailFollower): () => void;
  end(): void;
}

interface TailFollower {
  push(events: readonly Event[], position: FeedPosition): void;
  close(): void;
}

interface TailOptions {
  getStart(): Promise<FeedPosition>;
  read(after: FeedPosition): Promise<FeedPage>;
  onEmpty(): void;
  logger: Logger;
}

function createTail({ getStart: begin, read, onEmpty: left, logger }: TailOptions): Tail {
  const followers = new Set<TailFollower>();
  let position: FeedPosition | undefined;
  let polling = false;
  let pollAgain = false;
  let retries = 0;
  let retry: NodeJS.Timeout | undefined;

  /** @returns whether there is a reason to look again before a signal comes. */
  async function readNewEvents(): Promise<'now' | 'soon' | 'when signalled'> {
    if (position === undefined) {
      position = await begin();
      for (const follower of followers) follower.push([], position);
    }
    const page = await read(position);
    position = page.position;
    for (const follower of followers) follower.push(page.events, page.position);
    if (page.full) return 'now';
    return page.heldBack ? 'soon' : 'when signalled';
  }

  async function runPoll(): Promise<void> {
    polling = true;
    clearTimeout(retry);
    let next: Awaited<ReturnType<typeof readNewEvents>> = 'when signalled';
    do {
      pollAgain = false;
      try {
        next = await readNewEvents();
      } catch (error) {
        logger.warn({ err: error }, 'events could not be read for live streams, trying again');
        next = 'soon';
        retries = Math.max(retries, 5);
      }
    } while (followers.size > 0 && (pollAgain || next === 'now'));
    polling = false;
    if (followers.size === 0) return;
    if (next !== 'soon') {
      retries = 0;
      return;
    }
    retry = setTimeout(poll, Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** retries)).unref();
    retries += 1;
  }

  function poll(): void {
    pollAgain = true;
    if (!polling) void runPoll();
  }

  return {
    get position() {
      return position;
    },
    poll: poll,
    join(follower) {
      followers.add(follower);
      if (followers.size === 1) poll();
      return () => {
        if (!followers.delete(follower) || followers.size > 0) return;
        clearTimeout(retry);
        left();
      };
    },
    end() {
      for (const follower of [...followers]) follower.close();
    },
  };
}

interface FollowerOptions {
  tail: Tail;
  /** For what lies before the tail: only what the follower wants. */
  read(after: FeedPosition): Promise<FeedPage>;
  /** Whether an event of the tail is wanted. */
  wants(event: Event): boolean;
  after: FeedPosition;
}

function createFollower({ tail, read, wants, after }: FollowerOptions): Follower {
  let deliveredTo = after;
  /** Set while the tail gives it what is new. */
  let caughtUp = false;
  let queue: Event[] = [];
  /** Behind what is queued. */
  let queuedTo = after;
  let closed = false;
  /** Something came while nobody waited. */
  let signaled = false;
  let resume: (() => void) | undefined;

  const leave = tail.join({
    push(events, position) {
      if (!caughtUp) return wake();
      const wanted = events.filter((event) => positionOf(event) > queuedTo && wants(event));
      if (position > queuedTo) queuedTo = position;
      queue.push(...wanted);
      if (queue.length > MAX_QUEUED) {
        queue = [];
        caughtUp = false;
      }
      if (wanted.length > 0) wake();
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

  /** What lies between it and the tail. Empty where it has caught up, or has to wait for the tail. */
  async function catchUp(): Promise<readonly Event[]> {
    while (!closed) {
      const page = await read(deliveredTo);
      deliveredTo = page.position;
      // Nothing may happen between the comparison and the change, or an event would fall between the two.
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

function buildFilter(
  { inboxId }: Scope,
  { types, inboxIds, since }: FollowOptions,
): (event: Event) => boolean {
  return (event) =>
    (inboxId === undefined || event.inboxId === inboxId) &&
    (!types || types.includes(event.type)) &&
    (!since || event.createdAt >= since) &&
    (!inboxIds || (event.inboxId !== null && inboxIds.includes(event.inboxId)));
}
