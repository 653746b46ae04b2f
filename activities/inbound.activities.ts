import type { Logger } from 'pino';
import { ALREADY_PROCESSED, type IngestService } from '../domain/inbound/ingest.service.ts';
import type { ParseAgainService } from '../domain/inbound/parse-again.service.ts';
import { withApplicationFailures } from './failures.ts';
import { withHeartbeats } from './heartbeats.ts';

export type InboundActivities = ReturnType<typeof createInboundActivities>;

export interface InboundActivityOptions {
  ingest: IngestService;
  parseAgain: ParseAgainService;
  logger: Logger;
}

export function createInboundActivities({ ingest, parseAgain, logger }: InboundActivityOptions) {
  return {
    /** Turns a received message into a message of its inbox, or a delivery report into recorded outcomes. */
    ingestReceipt: ({ receiptId }: { receiptId: string }): Promise<string> =>
      withHeartbeats(async () => {
        const result = await ingest.ingest(receiptId);
        // A repeated attempt must not leave a second line.
        logger[result === ALREADY_PROCESSED ? 'debug' : 'info']({ receiptId, result }, 'message received');
        return result;
      }),

    /** Records that the message is lost, and why. */
    discardReceipt: ({ receiptId, reason }: { receiptId: string; reason: string }): Promise<string> =>
      withApplicationFailures(() => ingest.discard(receiptId, reason)),

    /** Parses a stored message again whose parser failed. */
    parseMessageAgain: ({ messageId }: { messageId: string }): Promise<string> =>
      withHeartbeats(() => parseAgain.parseAgain(messageId)),
  };
}
