import type { IngestService } from '../domain/inbound/ingest.service.ts';
import { withHeartbeats } from './heartbeats.ts';

export type InboundActivities = ReturnType<typeof createInboundActivities>;

export function createInboundActivities({ ingest }: { ingest: IngestService }) {
  return {
    /** Turns a received message into a message of its inbox, or a delivery report into recorded outcomes. */
    ingestReceipt: ({ receiptId }: { receiptId: string }): Promise<string> =>
      withHeartbeats(() => ingest.ingest(receiptId)),
  };
}
