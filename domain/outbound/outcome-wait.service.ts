import { isId } from '../../platform/ids.ts';
import type { Event } from '../events/event.entity.ts';
import type { EventStreams } from '../events/event-stream.ts';
import { type Wait, waitForState } from '../events/wait.ts';
import type { Scope } from '../identity/scope.ts';
import type { MessageService } from '../messages/message.service.ts';
import type { MessageDetails } from '../messages/message-details.ts';
import { isAwaitingReport, isSettled, isUnsettled } from './message-status.ts';

export interface OutcomeWaitOptions {
  messages: Pick<MessageService, 'get'>;
  eventStreams: Pick<EventStreams, 'follow'>;
}

/** A canceled or failed message has no event. */
const OUTCOME_EVENTS = {
  types: ['message.sent', 'message.delivered', 'message.bounced', 'message.complained', 'message.rejected'],
} as const;

export type OutcomeWaitService = ReturnType<typeof createOutcomeWaitService>;

export function createOutcomeWaitService({ messages, eventStreams }: OutcomeWaitOptions) {
  return {
    /**
     * Waits until the outcome of a message is known.
     *
     * @throws AppError `not_found`.
     */
    async begin(scope: Scope, messageId: string): Promise<Wait<MessageDetails>> {
      const { message } = await messages.get(scope, messageId);
      return waitForState({
        follower: await eventStreams.follow(scope, { ...OUTCOME_EVENTS, inboxIds: [message.inboxId] }),
        concerns: ({ data }) => mayConcern(data, messageId),
        async read() {
          const details = await messages.get(scope, messageId);
          return isOutcomeKnown(details) ? details : undefined;
        },
      });
    },
  };
}

/** The data of `message.rejected` has no message id. */
function mayConcern(data: Event['data'], messageId: string): boolean {
  const id = 'message_id' in data ? data.message_id : undefined;
  return typeof id !== 'string' || !isId('message', id) || id === messageId;
}

/** Whether every recipient has an outcome. If the relay reports deliveries, `sent` is not an outcome yet. */
function isOutcomeKnown({ message, recipients }: MessageDetails): boolean {
  if (message.status === 'canceled' || message.status === 'failed') return true;
  if (isOlderThan(message, recipients)) return false;
  return recipients.every(
    ({ status }) => isSettled(status) && !(message.tracked && isAwaitingReport(status)),
  );
}

/**
 * Whether an outcome was recorded after the message was read and before its recipients were, by another statement. Read
 * once more, the message has it, too.
 */
function isOlderThan(
  { status }: MessageDetails['message'],
  recipients: MessageDetails['recipients'],
): boolean {
  if (isUnsettled(status)) return true;
  return status === 'sent' && !recipients.some((recipient) => recipient.status === 'sent');
}
