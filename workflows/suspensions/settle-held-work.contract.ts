/** Contract of the run that settles an organization's held work after its suspensions or limits have changed. */
export const SETTLE_HELD_WORK = 'settleHeldWork';
export const settleSuspensionWorkflowId = (suspensionId: string, change: SuspensionRun['change']): string =>
  `held-work/${suspensionId}/${change}`;
/** @param changeId id of the usage event that records the change of limits. */
export const settleLimitsWorkflowId = (changeId: string): string => `held-work/${changeId}`;

export interface SuspensionRun {
  id: string;
  change: 'suspended' | 'reinstated';
}

export interface SettleHeldWorkInput {
  organizationId: string;
  /** The suspension that changed; null if limits did. */
  suspension: SuspensionRun | null;
}

export type SettleHeldWorkStage = 'rejecting' | 'releasing';
