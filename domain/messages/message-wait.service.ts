import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Event } from '../events/event.entity.ts';
import { FEED_START, type FeedPosition, positionOf, readEvents } from '../events/event-feed.ts';
import type { EventStreams } from '../events/event-stream.ts';
import type { EventDataByType } from '../events/event-types.ts';
import type { Wait } from '../events/wait.ts';
import { columnsWithin, type Scope } from '../identity/scope.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import { isHidden } from './hidden-labels.ts';
import type { MessageService } from './message.service.ts';
import type { MessageDetails } from './message-details.ts';
import { type AddressFilter, matchesAddressFilter } from './message-filter.ts';
import { findLivingThread, resolveThreadId } from './resolve-thread.ts';

export interface MessageCriteria {
  /** The sender's address or domain. */
  from?: AddressFilter | undefined;
  /** Part of the subject, case-insensitive. */
  subject?: string | undefined;
  /** Only a message with a one-time code. */
  hasCode?: boolean | undefined;
  /** The last message seen, or a time: later messages match. Undefined: {@link DEFAULT_LOOKBACK_MS} ago. */
  since?: { messageId: string } | { time: Date } | undefined;
}

/** Waits for incoming messages. Hidden messages do not match, unless their label is removed during the wait. */
export type MessageWaitService = ReturnType<typeof createMessageWaitService>;

/**
 * Messages that arrived shortly before the call also match, because a sign-up, for example, may send its message before
 * the client starts to wait.
 */
export const DEFAULT_LOOKBACK_MS = 30_000;

export type MessageWait = Wait<MessageDetails>;

export interface MessageWaitOptions {
  database: Database;
  messages: Pick<MessageService, 'get'>;
  eventStreams: Pick<EventStreams, 'follow'>;
}

export function createMessageWaitService(options: MessageWaitOptions) {
  const { database, messages, eventStreams } = options;

  async function follow(
    scope: Scope,
    { inboxId, start, criteria, isWanted = () => true }: Following,
  ): Promise<MessageWait> {
    const follower = await eventStreams.follow(scope, { ...RECEIVED_EVENTS, inboxIds: [inboxId], ...start });
    return {
      close: follower.close,
      async next(waitMs) {
        const deadline = performance.now() + waitMs;
        for (;;) {
          const events = await follower.next(Math.max(0, deadline - performance.now()));
          if (events.length === 0) return undefined;
          const matching = events.filter((event) => meetsCriteria(event, criteria));
          for (const event of criteria.hasCode ? await selectWithCode(scope, matching) : matching) {
            const found = (await isWanted(event)) ? await findIfVisible(messages, scope, event) : undefined;
            if (found) return found;
          }
        }
      },
    };
  }

  /** The events whose message has a one-time code, which events do not tell. */
  async function selectWithCode(scope: Scope, events: readonly Event[]): Promise<Event[]> {
    if (events.length === 0) return [];
    const ids = events.map((event) => receivedDataOf(event).message_id);
    const found = await database.read(scope, ({ db }) =>
      db
        .selectFrom('messages')
        .select('id')
        .where('id', '=', anyOf(ids))
        .where((eb) => eb.and(columnsWithin(scope)))
        .where(sql<boolean>`codes <> '[]'`)
        .execute(),
    );
    const withCode = new Set(found.map(({ id }) => id));
    return events.filter((event) => withCode.has(receivedDataOf(event).message_id));
  }

  return {
    /** @throws AppError `not_found` for the inbox, or for a `since` message in another inbox. */
    async begin(scope: Scope, inboxId: string, criteria: MessageCriteria): Promise<MessageWait> {
      const start = await database.transaction(scope, async (transaction) => {
        await findInbox(transaction.db, scope, inboxId);
        return findStartPosition(transaction, scope, inboxId, criteria.since);
      });
      return follow(scope, { inboxId, start, criteria });
    },

    /**
     * Waits for a message of a thread.
     *
     * @throws AppError `not_found` for the thread, or for a `since` message in another inbox.
     */
    async beginInThread(scope: Scope, threadId: string, criteria: MessageCriteria): Promise<MessageWait> {
      const { inboxId, start } = await database.transaction(scope, async (transaction) => {
        const thread = await findLivingThread(transaction.db, scope, threadId);
        if (!thread) throw notFound('thread', threadId);
        await findInbox(transaction.db, scope, thread.inboxId);
        return {
          inboxId: thread.inboxId,
          start: await findStartPosition(transaction, scope, thread.inboxId, criteria.since),
        };
      });
      // The thread may be merged into another one during the wait.
      const isOfThread = (event: Event) =>
        database.transaction(scope, async ({ db }) => {
          const livingId = await resolveThreadId(db, threadId);
          return livingId === (await resolveThreadId(db, receivedDataOf(event).thread_id));
        });
      return follow(scope, { inboxId, start, criteria, isWanted: isOfThread });
    },
  };
}

interface Following {
  inboxId: string;
  start: StartPosition;
  criteria: MessageCriteria;
  isWanted?: (event: Event) => boolean | Promise<boolean>;
}

interface StartPosition {
  after?: FeedPosition;
  since?: Date;
}

const RECEIVED_EVENTS = { types: ['message.received'] as const };

/** Finds the position to follow events from. For a message id it is exact, regardless of the order of commits. */
async function findStartPosition(
  transaction: Transaction,
  scope: Scope,
  inboxId: string,
  since: MessageCriteria['since'],
): Promise<StartPosition> {
  if (!since) return { after: FEED_START, since: new Date(Date.now() - DEFAULT_LOOKBACK_MS) };
  if ('time' in since) return { after: FEED_START, since: since.time };
  const { messageId } = since;
  const message = await transaction.db
    .selectFrom('messages')
    .select('created_at as createdAt')
    .where('id', '=', messageId)
    .where((eb) => eb.and({ ...columnsWithin(scope), inbox_id: inboxId }))
    .executeTakeFirst();
  if (!message) throw notFound('message', messageId);
  const of = { ...RECEIVED_EVENTS, inboxIds: [inboxId], messageId, limit: 1 };
  const [received] = (await readEvents(transaction.db, scope, of)).events;
  // Without an event the message is outbound or hidden, or its event is too old or not yet committed.
  return received ? { after: positionOf(received) } : { after: FEED_START, since: message.createdAt };
}

function receivedDataOf({ data }: Event): EventDataByType['message.received'] {
  return data as EventDataByType['message.received'];
}

function meetsCriteria(event: Event, { from, subject, since }: MessageCriteria): boolean {
  const received = receivedDataOf(event);
  if (since && 'messageId' in since && since.messageId === received.message_id) return false;
  if (from !== undefined && !matchesAddressFilter(from, received.from_address)) return false;
  return (
    subject === undefined ||
    normalizeForComparison(received.subject).includes(normalizeForComparison(subject))
  );
}

/** Ignores case and Unicode composition. */
function normalizeForComparison(text: string): string {
  return text.normalize('NFC').toLowerCase();
}

/** Returns undefined if the message was deleted or hidden after its event. */
async function findIfVisible(
  messages: Pick<MessageService, 'get'>,
  scope: Scope,
  event: Event,
): Promise<MessageDetails | undefined> {
  try {
    const details = await messages.get(scope, receivedDataOf(event).message_id);
    return isHidden(details.message.labels) ? undefined : details;
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return undefined;
    throw error;
  }
}
