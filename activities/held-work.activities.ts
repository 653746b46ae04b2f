import type { HeldWorkCounts, HeldWorkService } from '../domain/administration/held-work.service.ts';
import type { SuspensionRun } from '../workflows/suspensions/settle-held-work.contract.ts';
import { withApplicationFailures } from './failures.ts';
import { heartbeatBetweenSteps } from './heartbeats.ts';

export type HeldWorkActivities = ReturnType<typeof createHeldWorkActivities>;

export function createHeldWorkActivities({ heldWork }: { heldWork: HeldWorkService }) {
  const onProgress = (counts: HeldWorkCounts): void => heartbeatBetweenSteps(counts);
  return {
    /** Rejects, in batches, what a suspension for abuse forbids. @returns counts, for the Temporal UI. */
    rejectHeldWork: ({ organizationId }: { organizationId: string }): Promise<string> =>
      withApplicationFailures(async () => describe(await heldWork.reject(organizationId, onProgress))),

    /** Releases, in batches, what nothing holds. @returns counts, for the Temporal UI. */
    releaseHeldWork: ({ organizationId }: { organizationId: string }): Promise<string> =>
      withApplicationFailures(async () => describe(await heldWork.release(organizationId, onProgress))),

    recordSuspensionSettled: (suspension: SuspensionRun): Promise<void> =>
      withApplicationFailures(() => heldWork.markSettled(suspension)),
  };
}

function describe({ messages, drafts, deliveries }: HeldWorkCounts): string {
  return `${messages} message(s), ${drafts} draft(s), ${deliveries} webhook deliveries`;
}
