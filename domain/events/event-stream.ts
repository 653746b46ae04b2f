import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.ts';
import type { EventSignals } from '../../platform/event-signals.ts';
import { createSlots } from '../../platform/slots.ts';
import type { Scope } from '../identity/scope.ts';
import type { Event } from './event.entity.ts';
import { type FeedPosition, feedEnd, positionOf, readEvents } from './event-feed.ts';
import { type EventType, MAX_EVENT_BYTES } from './event-types.ts';

/** Events as they come, to whoever follows: live streams, and calls that wait for a message. */
export interface EventStreams {
  /**
   * Follows the events the scope may see, in the order of the feed.
   *
   * `wanted.after`: begin behind it; empty: with what happens from now on.
   */
  follow(scope: Scope, wanted: WantedEvents): Promise<Follower>;
  /** Ends every follower, then the connection that wakes them. */
  close(): Promise<void>;
}

export interface WantedEvents {
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

const PAGE = 50;
/** A page holds one event more at most: what a follower whose reader takes nothing costs. */
const PAGE_BYTES = MAX_EVENT_BYTES;
/** What a slow follower may have waiting; beyond it, it reads for itself what it has the time for. */
const MAX_QUEUED = 100;
/** Reads under way in this process, so that a poll of many environments leaves connections to requests. */
const READS_AT_ONCE = 4;
const FIRST_RETRY_MS = 20;
const MAX_RETRY_MS = 1_000;

/**
 * Followers of one environment share one reader, its tail: a signal costs one read however many follow, and an idle
 * follower costs none. Who comes from further back reads for itself until it has caught up with the tail, and so does
 * who is too slow for it; memory holds at most {@link MAX_QUEUED} events a follower, and those are the tail's own.
 */
export function createEventStreams({ database, signals, logger }: EventStreamsOptions): EventStreams {
  const tails = new Map<string, Tail>();
  const reads = createSlots(READS_AT_ONCE);

  const read = async (scope: TailScope, wanted: WantedEvents, after: FeedPosition): Promise<FeedPage> => {
    const giveBack = await reads.take();
    try {
      return await readPage(database, scope, { ...wanted, after });
    } finally {
      giveBack();
    }
  };

  function tailOf({ organizationId, environmentId }: Scope): Tail {
    let tail = tails.get(environmentId);
    if (!tail) {
      const scope = { organizationId, environmentId };
      const unsubscribe = [organizationId, environmentId].map((topic) =>
        signals.subscribe(topic, () => tails.get(environmentId)?.look()),
      );
      tail = createTail({
        read: (after) => read(scope, {}, after),
        begin: () => database.transaction(scope, ({ em }) => feedEnd(em)),
        left: () => {
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
      const end = await database.transaction({ organizationId }, ({ em }) => feedEnd(em));
      return createFollower({
        tail: tailOf(scope),
        read: (after) => read({ organizationId, environmentId, inboxId }, wanted, after),
        wants: filterOf(scope, wanted),
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

async function readPage(database: Database, scope: TailScope, wanted: WantedEvents): Promise<FeedPage> {
  return database.transaction({ organizationId: scope.organizationId }, async ({ em }) => {
    // Before the events, whose statement sees no less than this one.
    const end = await feedEnd(em);
    const [held] = await em.execute<{ back: boolean }[]>(
      `select exists (select 1 from events where env_id = ? and transaction_id >= pg_snapshot_xmin(pg_current_snapshot()))
           or exists (select 1 from events where org_id = ? and inbox_id is null
                      and transaction_id >= pg_snapshot_xmin(pg_current_snapshot())) as back`,
      [scope.environmentId, scope.organizationId],
    );
    const { events, cut } = await readEvents(em, scope, { ...wanted, limit: PAGE, maxBytes: PAGE_BYTES });
    const last = events.at(-1);
    const full = cut || events.length === PAGE;
    const read = last ? positionOf(last) : end;
    return { events, position: full || read > end ? read : end, full, heldBack: held?.back ?? false };
  });
}

interface Tail {
  /** Empty until the first look. */
  readonly position: FeedPosition | undefined;
  /** Reads what is new, now or right after the read under way. */
  look(): void;
  /** @returns takes the follower away; with the last one the tail ends. */
  join(follower: TailFollower): () => void;
  end(): void;
}

interface TailFollower {
  give(events: readonly Event[], position: FeedPosition): void;
  close(): void;
}

interface TailOptions {
  begin(): Promise<FeedPosition>;
  read(after: FeedPosition): Promise<FeedPage>;
  left(): void;
  logger: Logger;
}

function createTail({ begin, read, left, logger }: TailOptions): Tail {
  const followers = new Set<TailFollower>();
  let position: FeedPosition | undefined;
  let looking = false;
  let again = false;
  let retries = 0;
  let retry: NodeJS.Timeout | undefined;

  /** @returns whether there is a reason to look again before a signal comes. */
  async function readOn(): Promise<'now' | 'soon' | 'when signalled'> {
    if (position === undefined) {
      position = await begin();
      for (const follower of followers) follower.give([], position);
    }
    const page = await read(position);
    position = page.position;
    for (const follower of followers) follower.give(page.events, page.position);
    if (page.full) return 'now';
    return page.heldBack ? 'soon' : 'when signalled';
  }

  async function lookNow(): Promise<void> {
    looking = true;
    clearTimeout(retry);
    let next: Awaited<ReturnType<typeof readOn>> = 'when signalled';
    do {
      again = false;
      try {
        next = await readOn();
      } catch (error) {
        logger.warn({ err: error }, 'events could not be read for live streams, trying again');
        next = 'soon';
        retries = Math.max(retries, 5);
      }
    } while (followers.size > 0 && (again || next === 'now'));
    looking = false;
    if (followers.size === 0) return;
    if (next !== 'soon') {
      retries = 0;
      return;
    }
    retry = setTimeout(look, Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** retries)).unref();
    retries += 1;
  }

  function look(): void {
    again = true;
    if (!looking) void lookNow();
  }

  return {
    get position() {
      return position;
    },
    look,
    join(follower) {
      followers.add(follower);
      if (followers.size === 1) look();
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
  let given = after;
  /** Set while the tail gives it what is new. */
  let caughtUp = false;
  let queue: Event[] = [];
  /** Behind what is queued. */
  let looked = after;
  let closed = false;
  /** Something came while nobody waited. */
  let signalled = false;
  let resume: (() => void) | undefined;

  const leave = tail.join({
    give(events, position) {
      if (!caughtUp) return wake();
      const wanted = events.filter((event) => positionOf(event) > looked && wants(event));
      if (position > looked) looked = position;
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
    signalled = true;
    resume?.();
  }

  function close(): void {
    closed = true;
    queue = [];
    leave();
    wake();
  }

  async function woken(waitMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, waitMs);
    resume = resolve;
    if (!signalled) await promise;
    clearTimeout(timer);
    resume = undefined;
    signalled = false;
  }

  /** What lies between it and the tail. Empty where it has caught up, or has to wait for the tail. */
  async function catchUp(): Promise<readonly Event[]> {
    while (!closed) {
      const page = await read(given);
      given = page.position;
      // Nothing may happen between the comparison and the change, or an event would fall between the two.
      if (!page.full && tail.position !== undefined && given >= tail.position) {
        caughtUp = true;
        looked = given;
      }
      if (page.events.length > 0 || caughtUp || tail.position === undefined) return page.events;
    }
    return [];
  }

  return {
    get position() {
      return given;
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
          given = looked;
          if (events.length > 0) return events;
        }
        const leftMs = deadline - performance.now();
        if (closed || leftMs <= 0) break;
        await woken(leftMs);
      }
      return [];
    },
    close,
  };
}

function filterOf({ inboxId }: Scope, { types, inboxIds, since }: WantedEvents): (event: Event) => boolean {
  return (event) =>
    (inboxId === undefined || event.inboxId === inboxId) &&
    (!types || types.includes(event.type)) &&
    (!since || event.createdAt >= since) &&
    (!inboxIds || (event.inboxId !== null && inboxIds.includes(event.inboxId)));
}
