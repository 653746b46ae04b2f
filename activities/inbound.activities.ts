import type { IngestService } from '../domain/inbound/ingest.service.ts';
import { withApplicationFailures } from './failures.ts';
import { withHeartbeats } from './heartbeats.ts';

export type InboundActivities = ReturnType<typeof createInboundActivities>;

export function createInboundActivities({ ingest }: { ingest: IngestService }) {
  return {
    /** Turns a received message into a message of its inbox, or a delivery report into recorded outcomes. */
    ingestReceipt: ({ receiptId }: { receiptId: string }): Promise<string> =>
      withHeartbeats(() => ingest.ingest(receiptId)),

    /** Records that the message is lost, and why. */
    discardReceipt: ({ receiptId, reason }: { receiptId: string; reason: string }): Promise<string> =>
      withApplicationFailures(() => ingest.discard(receiptId, reason)),
  };
}
