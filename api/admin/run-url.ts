import type { Config } from '../../platform/config.ts';

/** The run's page in the Temporal UI. */
export function buildUrlOf({
  config,
}: {
  config: Pick<Config, 'TEMPORAL_UI_URL' | 'TEMPORAL_NAMESPACE'>;
}): (run: { workflowId: string; runId: string }) => string | null {
  const base = config.TEMPORAL_UI_URL?.replace(/\/+$/, '');
  return ({ workflowId, runId }) =>
    base === undefined
      ? null
      : `${base}/namespaces/${encodeURIComponent(config.TEMPORAL_NAMESPACE)}/workflows/${encodeURIComponent(workflowId)}/${runId}/history`;
}
