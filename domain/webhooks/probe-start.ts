import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import { PRIORITY, WEBHOOKS_QUEUE } from '../../workflows/task-queues.contract.ts';
import {
  PROBE_ENDPOINT,
  PROBE_NOW,
  probeEndpointWorkflowId,
} from '../../workflows/webhooks/probe-endpoint.contract.ts';
import type { WebhookEndpoint } from './endpoint.entity.ts';

export type ProbedEndpoint = Pick<
  WebhookEndpoint,
  'id' | 'organizationId' | 'environmentId' | 'probeEpisode'
>;

/** Operators find the run by endpoint (`ResourceId`). */
export function buildProbeStart(endpoint: ProbedEndpoint): StartCommand {
  return {
    workflowType: PROBE_ENDPOINT,
    workflowId: probeEndpointWorkflowId(endpoint.id, endpoint.probeEpisode),
    taskQueue: WEBHOOKS_QUEUE,
    input: { endpointId: endpoint.id, episode: endpoint.probeEpisode },
    priority: { priorityKey: PRIORITY.default, fairnessKey: endpoint.id },
    searchAttributes: {
      OrgId: endpoint.organizationId,
      EnvId: endpoint.environmentId,
      ResourceId: endpoint.id,
      Stage: 'probing',
    },
    summary: `Probe ${endpoint.id}`,
  };
}

/** Makes the run look at the endpoint now. A run that an operator ended is started again. */
export function wakeProbe(transaction: Transaction, outbox: Outbox, endpoint: ProbedEndpoint): void {
  const start = buildProbeStart(endpoint);
  outbox.enqueue(transaction, endpoint.organizationId, {
    start,
    signal: { workflowId: start.workflowId, signalName: PROBE_NOW, args: [] },
  });
}
