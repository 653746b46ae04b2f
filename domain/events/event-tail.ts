import type { Logger } from 'pino';
import type { Event } from './event.entity.ts';
import type { FeedPosition } from './event-feed.ts';

export interface FeedPage {
  events: readonly Event[];
  /** Everything up to here was read. */
  position: FeedPosition;
  /** There may be more events after it. */
  full: boolean;
  /** Committed events are not visible yet because an older transaction is open; its end sends no signal. */
  heldBack: boolean;
}

export interface Tail {
  /** Undefined until the first read. */
  readonly position: FeedPosition | undefined;
  /** Reads new events, now or right after the read in progress. */
  poll(): void;
  /** @returns a function that removes the follower. The tail ends when its last follower is removed. */
  join(follower: TailFollower): () => void;
  end(): void;
}

export interface TailFollower {
  push(events: readonly Event[], position: FeedPosition): void;
  close(): void;
}

export interface TailOptions {
  getStart(): Promise<FeedPosition>;
  read(after: FeedPosition): Promise<FeedPage>;
  onEmpty(): void;
  logger: Logger;
}

const FIRST_RETRY_MS = 20;
const MAX_RETRY_MS = 1_000;

/**
 * Reads the new events of one environment once for all its followers: a signal costs one read regardless of their number,
 * and an idle follower costs none.
 */
export function createTail({ getStart, read, onEmpty, logger }: TailOptions): Tail {
  const followers = new Set<TailFollower>();
  let position: FeedPosition | undefined;
  let polling = false;
  let pollAgain = false;
  let retries = 0;
  let retry: NodeJS.Timeout | undefined;

  /** @returns when to read next. */
  async function readNewEvents(): Promise<'now' | 'soon' | 'when signaled'> {
    if (position === undefined) {
      position = await getStart();
      for (const follower of followers) follower.push([], position);
    }
    const page = await read(position);
    position = page.position;
    for (const follower of followers) follower.push(page.events, page.position);
    if (page.full) return 'now';
    return page.heldBack ? 'soon' : 'when signaled';
  }

  async function runPoll(): Promise<void> {
    polling = true;
    clearTimeout(retry);
    let next: Awaited<ReturnType<typeof readNewEvents>> = 'when signaled';
    do {
      pollAgain = false;
      try {
        next = await readNewEvents();
      } catch (error) {
        logger.warn({ err: error }, 'could not read events for live streams, retrying');
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
    poll,
    join(follower) {
      followers.add(follower);
      if (followers.size === 1) poll();
      return () => {
        if (!followers.delete(follower) || followers.size > 0) return;
        clearTimeout(retry);
        onEmpty();
      };
    },
    end() {
      for (const follower of [...followers]) follower.close();
    },
  };
}
