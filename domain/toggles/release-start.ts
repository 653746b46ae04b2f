import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import {
  type HoldingToggle,
  RELEASE_HELD,
  releaseHeldWorkflowId,
} from '../../workflows/toggles/release-held.contract.ts';
import type { ToggleName } from './toggle-names.ts';

const HOLDING_TOGGLES: readonly ToggleName[] = ['sending', 'webhook_deliveries'] satisfies HoldingToggle[];

/** Whether the toggle holds something while it is off. */
export const isHolding = (name: ToggleName): name is HoldingToggle => HOLDING_TOGGLES.includes(name);

export function buildReleaseStart(toggle: HoldingToggle, changedAt: Date): StartCommand {
  return {
    workflowType: RELEASE_HELD,
    workflowId: releaseHeldWorkflowId(toggle, changedAt.getTime()),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.urgent, fairnessKey: toggle },
    input: { toggle },
    searchAttributes: { ResourceId: toggle, Stage: 'releasing' },
    summary: `Release what was held while ${toggle} was off`,
  };
}
