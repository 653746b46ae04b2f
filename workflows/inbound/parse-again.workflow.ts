import { proxyActivities } from '@temporalio/workflow';
import type { InboundActivities } from '../../activities/inbound.activities.ts';
import type { ParseAgainInput } from './parse-again.contract.ts';

const { parseMessageAgain } = proxyActivities<InboundActivities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '30 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});

/** Parses a stored message again. @returns a description of the result, for the Temporal UI. */
export async function parseAgain({ messageId }: ParseAgainInput): Promise<string> {
  return parseMessageAgain({ messageId });
}
