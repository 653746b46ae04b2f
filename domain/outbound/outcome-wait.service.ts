import { isId } from '../../platform/ids.ts';
import type { Event } from '../events/event.entity.ts';
import type { EventStreams } from '../events/event-stream.ts';
import type { Scope } from '../identity/scope.ts';
import type { MessageService } from '../messages/message.service.ts';
import type { MessageDetails } from '../messages/message-details.ts';
import type { MessageWait } from '../messages/message-wait.service.ts';
import { isAwaitingReport, isSettled } from './message-status.ts';

export interface OutcomeWaitOptions {
  messages: Pick<MessageService, 'get'>;
  eventStreams: Pick<EventStreams, 'follow'>;
}

const OUTCOME_EVENTS = {
  types: ['message.sent', 'message.delivered', 'message.bounced', 'message.complained', 'message.rejected'],
} as const;
/** The message is also read at this interval, because a canceled or failed message has no event. */
const READ_INTERVAL_MS = 5_000;

export type OutcomeWaitService = ReturnType<typeof createOutcomeWaitService>;

export function createOutcomeWaitService({ messages, eventStreams }: OutcomeWaitOptions) {
  return {
    /**
     * Waits until the outcome of a message is known.
     *
     * @throws AppError `not_found`.
     */
    async begin(scope: Scope, messageId: string): Promise<MessageWait> {
      const { message } = await messages.get(scope, messageId);
      const follower = await eventStreams.follow(scope, { ...OUTCOME_EVENTS, inboxIds: [message.inboxId] });
      const readIfSettled = async () => {
        const details = await messages.get(scope, messageId);
        return isOutcomeKnown(details) ? details : undefined;
      };
      return {
        close: follower.close,
        async next(waitMs) {
          const deadline = performance.now() + waitMs;
          for (;;) {
            // Read after the follower has its position, so that no change is missed between the two.
            const settled = await readIfSettled();
            const leftMs = deadline - performance.now();
            if (settled || leftMs <= 0) return settled;
            await waitForEvent(follower.next, messageId, Math.min(leftMs, READ_INTERVAL_MS));
          }
        },
      };
    },
  };
}

/** Returns after an event that may be about the message, or after `waitMs`. */
async function waitForEvent(
  next: (waitMs: number) => Promise<readonly Event[]>,
  messageId: string,
  waitMs: number,
): Promise<void> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const events = await next(Math.max(0, deadline - performance.now()));
    if (events.length === 0 || events.some(({ data }) => mayConcern(data, messageId))) return;
  }
}

/** The data of `message.rejected` has no message id. */
function mayConcern(data: Event['data'], messageId: string): boolean {
  const id = 'message_id' in data ? data.message_id : undefined;
  return typeof id !== 'string' || !isId('message', id) || id === messageId;
}

/** Whether every recipient has an outcome. If the relay reports deliveries, `sent` is not an outcome yet. */
function isOutcomeKnown({ message, recipients }: MessageDetails): boolean {
  if (message.status === 'canceled' || message.status === 'failed') return true;
  return recipients.every(
    ({ status }) => isSettled(status) && !(message.tracked && isAwaitingReport(status)),
  );
}
