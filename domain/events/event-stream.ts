import { sql } from 'kysely';
import type { Logger } from 'pino';
import { createFairShare, organizationHolder } from '../../platform/concurrency/fair-share.ts';
import type { Database } from '../../platform/database/database.ts';
import type { EventSignals } from '../../platform/event-signals.ts';
import type { Scope } from '../identity/scope.ts';
import type { Event } from './event.entity.ts';
import { type FeedPosition, getFeedEnd, positionOf, readEvents } from './event-feed.ts';
import { createFollower, type Follower } from './event-follower.ts';
import { createTail, type FeedPage, type Tail } from './event-tail.ts';
import { type EventType, MAX_EVENT_BYTES } from './event-types.ts';

/** Live events, for streams and for calls that wait for a message. */
export interface EventStreams {
  /**
   * Follows the events visible to the scope, in the order of the feed.
   *
   * @param options.after start after this position; by default at the current end.
   */
  follow(scope: Scope, options: FollowOptions): Promise<Follower>;
  /** Closes all followers, then the connection that signals new events. */
  close(): Promise<void>;
}

export interface FollowOptions {
  after?: FeedPosition | undefined;
  types?: readonly EventType[] | undefined;
  inboxIds?: readonly string[] | undefined;
  /** Recorded at or after this time. */
  since?: Date | undefined;
}

export interface EventStreamsOptions {
  database: Database;
  signals: Pick<EventSignals, 'subscribe' | 'close'>;
  logger: Logger;
}

const PAGE_SIZE = 50;
/** Bounds the memory of a follower whose client reads nothing. A page may exceed this by one event. */
const PAGE_BYTES = MAX_EVENT_BYTES;
/** Per process, so that polling many environments leaves database connections for requests. */
const MAX_CONCURRENT_READS = 4;

/**
 * Followers of one environment share a reader, the tail. A follower that starts further back, or is too slow for the tail,
 * reads its own pages until it has caught up.
 */
export function createEventStreams({ database, signals, logger }: EventStreamsOptions): EventStreams {
  const tails = new Map<string, Tail>();
  const reads = createFairShare({ name: 'reads of events', capacity: MAX_CONCURRENT_READS });

  const read = async (scope: TailScope, options: FollowOptions, after: FeedPosition): Promise<FeedPage> => {
    const release = await reads.acquire({ holders: [organizationHolder(scope.organizationId)] });
    try {
      return await readPage(database, scope, { ...options, after });
    } finally {
      release();
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
        getStart: () => database.read(scope, ({ db }) => getFeedEnd(db)),
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
    async follow(scope, options) {
      const { organizationId, environmentId, inboxId } = scope;
      const end = await database.read({ organizationId }, ({ db }) => getFeedEnd(db));
      return createFollower({
        tail: getTail(scope),
        read: (after) => read({ organizationId, environmentId, inboxId }, options, after),
        matches: buildFilter(scope, options),
        // A position beyond the end is not visible yet or belongs to another database.
        after: options.after !== undefined && options.after < end ? options.after : end,
      });
    },
    async close() {
      for (const tail of tails.values()) tail.end();
      await signals.close();
    },
  };
}

type TailScope = Pick<Scope, 'organizationId' | 'environmentId' | 'inboxId'>;

async function readPage(database: Database, scope: TailScope, options: FollowOptions): Promise<FeedPage> {
  return database.read({ organizationId: scope.organizationId }, async ({ db }) => {
    // Read before the events, so that the snapshot of the later statement includes every event up to this position.
    const end = await getFeedEnd(db);
    const isHeldBack = sql<boolean>`transaction_id >= pg_snapshot_xmin(pg_current_snapshot())`;
    const row = await db
      .selectNoFrom((eb) =>
        eb
          .or([
            eb.exists(
              eb
                .selectFrom('events')
                .select('id')
                .where('env_id', '=', scope.environmentId)
                .where(isHeldBack),
            ),
            eb.exists(
              eb
                .selectFrom('events')
                .select('id')
                .where('org_id', '=', scope.organizationId)
                .where('inbox_id', 'is', null)
                .where(isHeldBack),
            ),
          ])
          .as('heldBack'),
      )
      .executeTakeFirst();
    const { events, truncated } = await readEvents(db, scope, {
      ...options,
      limit: PAGE_SIZE,
      maxBytes: PAGE_BYTES,
    });
    const last = events.at(-1);
    const full = truncated || events.length === PAGE_SIZE;
    const read = last ? positionOf(last) : end;
    return { events, position: full || read > end ? read : end, full, heldBack: Boolean(row?.heldBack) };
  });
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
