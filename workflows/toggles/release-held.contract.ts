/** Contract of the release of what was held while staff had switched it off. */
export const RELEASE_HELD = 'releaseHeld';
/** @param changedAt when it was switched on, in milliseconds: each time is a run of its own. */
export const releaseHeldWorkflowId = (toggle: string, changedAt: number): string =>
  `release-held/${toggle}/${changedAt}`;

/** Toggles that hold something while they are off. */
export type HoldingToggle = 'sending' | 'webhook_deliveries';

export interface ReleaseHeldInput {
  toggle: HoldingToggle;
}
