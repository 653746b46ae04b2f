import { ApplicationFailure } from '@temporalio/common';
import type { ProbeOutcome, ProbeService } from '../domain/webhooks/probe.service.ts';
import { withApplicationFailures } from './failures.ts';

export type WebhookProbeActivities = ReturnType<typeof createWebhookProbeActivities>;

export interface ProbeRun {
  endpointId: string;
  generation: number;
}

/** Like an attempt of a delivery, a step that must be repeated throws with the exact delay, which the UI shows. */
export function createWebhookProbeActivities({ probes }: { probes: ProbeService }) {
  return {
    /** Makes one attempt with the oldest held delivery. @returns `recovered`, or why there is nothing to probe. */
    attemptProbe: ({ endpointId, generation, now }: ProbeRun & { now: boolean }): Promise<string> =>
      withApplicationFailures(async () =>
        finish('EndpointFailing', await probes.attempt({ endpointId, generation, now })),
      ),

    /** Starts the next held deliveries. @returns `released` after the last, or why it stopped. */
    releaseBacklog: ({ endpointId, generation }: ProbeRun): Promise<string> =>
      withApplicationFailures(async () =>
        finish('ReleasingBacklog', await probes.release({ endpointId, generation })),
      ),
  };
}

function finish(type: string, outcome: ProbeOutcome): string {
  if (outcome.kind === 'ended') return outcome.status;
  throw ApplicationFailure.create({
    type,
    message: outcome.detail,
    nextRetryDelay: Math.max(1, outcome.delayMs),
  });
}
