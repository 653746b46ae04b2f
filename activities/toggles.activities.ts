import { Context } from '@temporalio/activity';
import type { HoldingToggle } from '../workflows/toggles/release-held.contract.ts';
import { withApplicationFailures } from './failures.ts';

export interface ToggleActivityOptions {
  /** Each releases some of what its toggle held; 0 if nothing is left, or the toggle is off again. */
  releases: Record<HoldingToggle, () => Promise<number>>;
}

export type ToggleActivities = ReturnType<typeof createToggleActivities>;

export function createToggleActivities({ releases }: ToggleActivityOptions) {
  return {
    /** Releases all that a toggle held. @returns the count. */
    releaseHeld: ({ toggle }: { toggle: HoldingToggle }): Promise<number> =>
      withApplicationFailures(async () => {
        for (let total = 0; ; ) {
          Context.current().heartbeat(total);
          Context.current().cancellationSignal.throwIfAborted();
          const released = await releases[toggle]();
          total += released;
          if (released === 0) return total;
        }
      }),
  };
}
