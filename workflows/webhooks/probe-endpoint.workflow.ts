import {
  ActivityCancellationType,
  CancellationScope,
  continueAsNew,
  defineSignal,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { WebhookProbeActivities } from '../../activities/webhook-probes.activities.ts';
import { createStageReporter } from '../stage.ts';
import { PROBE_NOW, type ProbeEndpointInput } from './probe-endpoint.contract.ts';

const { attemptProbe, releaseBacklog } = proxyActivities<WebhookProbeActivities>({
  // The attempt itself times out after at most 60 s; the rest is for the database.
  startToCloseTimeout: '90 seconds',
  // Cancellation ends an activity's backoff immediately but lets a probe in progress finish.
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});

/** Only signals make the history grow, by about eight events each. */
const MAX_HISTORY_EVENTS = 500;

export const retryNow = defineSignal(PROBE_NOW);

/**
 * Probes a failing endpoint with its oldest held delivery until one succeeds, then releases the backlog in batches. The
 * probes are retries of one activity, and so are the batches: the history stays short, however long the endpoint fails.
 * Ends if the endpoint is disabled or deleted. `reconcile` restarts a run that an operator stopped.
 *
 * @returns how it ended, for the Temporal UI.
 */
export async function probeEndpoint({ endpointId, generation, now }: ProbeEndpointInput): Promise<string> {
  let probeNow = now ?? false;
  let step = new CancellationScope();
  setHandler(
    retryNow,
    () => {
      probeNow = true;
      step.cancel();
    },
    { description: 'Probe now. A probe in progress finishes first.' },
  );
  async function repeatUntilDone(activity: (now: boolean) => Promise<string>): Promise<string> {
    for (;;) {
      if (workflowInfo().historyLength >= MAX_HISTORY_EVENTS)
        await continueAsNew<typeof probeEndpoint>({ endpointId, generation, now: probeNow });
      const isRequested = probeNow;
      probeNow = false;
      step = new CancellationScope();
      try {
        return await step.run(() => activity(isRequested));
      } catch (error) {
        if (!probeNow) throw error;
      }
    }
  }

  const stage = createStageReporter<'probing' | 'releasing'>('probing');
  setCurrentDetails(
    'Signal: retryNow. Probes with the oldest held delivery every minute, after ten minutes every 5 minutes. Pending Activities shows the last result and the time of the next probe.',
  );
  for (;;) {
    const end = await repeatUntilDone((isRequested) =>
      attemptProbe({ endpointId, generation, now: isRequested }),
    );
    if (end !== 'recovered') return stage.end(end);
    stage.report(
      'releasing',
      'The endpoint answers again. Its held deliveries start in batches, oldest first.',
    );
    const release = await repeatUntilDone(() => releaseBacklog({ endpointId, generation }));
    if (release !== 'failing') return stage.end(release);
    stage.report('probing', 'Signal: retryNow. The endpoint failed again while its backlog was released.');
  }
}
