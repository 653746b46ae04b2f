/** Contract of the run that probes a failing endpoint and releases its held deliveries. */
export const PROBE_ENDPOINT = 'probeEndpoint';
/** @param generation incremented each time the endpoint starts to hold its deliveries. */
export const probeEndpointWorkflowId = (endpointId: string, generation: number): string =>
  `webhook-probe/${endpointId}/${generation}`;

export interface ProbeEndpointInput {
  endpointId: string;
  generation: number;
  /** Probe without waiting for the interval. Set by a run that continues as new. */
  now?: boolean;
}

/** Signal: probe now. A probe in progress finishes first. */
export const PROBE_NOW = 'retryNow';

const FREQUENT_PROBE_INTERVAL_MS = 60_000;
const PROBE_INTERVAL_MS = 300_000;
/** How long probes are frequent: many receivers are back within minutes. */
const FREQUENT_PROBES_MS = 600_000;

/** Time until the next probe. @param elapsedMs since the endpoint began to fail. */
export function probeIntervalMs(elapsedMs: number): number {
  return elapsedMs < FREQUENT_PROBES_MS ? FREQUENT_PROBE_INTERVAL_MS : PROBE_INTERVAL_MS;
}
