import type { OptionsOf } from '../../platform/options-of.ts';
import { createOutcomeWaitService } from './outcome-wait.service.ts';
import { createReplyService } from './reply.service.ts';
import { createSendService } from './send.service.ts';
import { createSendBatch } from './send-batch.ts';

type Options<Draft> = OptionsOf<typeof createReplyService<Draft>> &
  OptionsOf<typeof createOutcomeWaitService>;

/** The services with which the API sends messages. */
export function createOutbound<Draft>(options: Options<Draft>) {
  return {
    sends: createSendService(options),
    sendBatch: createSendBatch(options),
    replies: createReplyService(options),
    outcomeWaits: createOutcomeWaitService(options),
  };
}
