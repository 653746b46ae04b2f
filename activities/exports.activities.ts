import { setInterval } from 'node:timers';
import { Context } from '@temporalio/activity';
import type { ExportRunner } from '../domain/exports/export-runner.ts';
import { acquireBriefly, type FairShare, organizationHolder } from '../platform/concurrency/fair-share.ts';
import { type ExportProgress, WRITE_SLICE_MS } from '../workflows/exports/export-organization.contract.ts';
import { withApplicationFailures } from './failures.ts';

export type ExportActivities = ReturnType<typeof createExportActivities>;

/** When an export tries again that found no slot. */
const BUSY_RETRY_MS = 5_000;
const HEARTBEAT_INTERVAL_MS = 5_000;

export function createExportActivities({
  exports,
  shares,
  writeSliceMs = WRITE_SLICE_MS,
}: {
  exports: ExportRunner;
  shares: FairShare;
  writeSliceMs?: number;
}) {
  /** Heartbeats on a timer, because a step may wait for storage. The activity timeout ends a step that hangs. */
  async function withSlot<T>(
    exportId: string,
    work: (signal: AbortSignal, onProgress: (progress: string) => void) => Promise<T>,
  ): Promise<T> {
    const context = Context.current();
    const signal = context.cancellationSignal;
    let latestProgress = '';
    const heartbeat = setInterval(() => context.heartbeat(latestProgress), HEARTBEAT_INTERVAL_MS);
    let release = () => {};
    try {
      return await withApplicationFailures(async () => {
        const holders = [organizationHolder((await exports.findOrganization(exportId)) ?? '')];
        release = await acquireBriefly(shares, { holders }, BUSY_RETRY_MS);
        return work(signal, (progress) => {
          latestProgress = progress;
        });
      });
    } catch (error) {
      // Reports the cancellation to Temporal.
      if (signal.aborted) return await context.cancelled;
      throw error;
    } finally {
      release();
      clearInterval(heartbeat);
    }
  }

  return {
    /** Continues from the last checkpoint; work after it is repeated. */
    writeArchive: ({ exportId }: { exportId: string }): Promise<ExportProgress> =>
      withSlot(exportId, (signal, onProgress) =>
        exports.write(exportId, { deadlineMs: Date.now() + writeSliceMs, signal, onProgress }),
      ),

    abortExport: ({
      exportId,
      status,
      detail,
    }: {
      exportId: string;
      status: 'failed' | 'canceled';
      detail: string;
    }): Promise<string> => withApplicationFailures(() => exports.abort(exportId, status, detail)),
  };
}
