import { setInterval } from 'node:timers';
import { Context } from '@temporalio/activity';
import type { ExportRunner } from '../domain/exports/export-runner.ts';
import { createSemaphore } from '../platform/concurrency/semaphore.ts';
import { type ExportProgress, WRITE_SLICE_MS } from '../workflows/exports/export-organization.contract.ts';
import { withApplicationFailures } from './failures.ts';

export type ExportActivities = ReturnType<typeof createExportActivities>;

/** Limited, because each export has parts of its archive in memory. */
const MAX_CONCURRENT_EXPORTS = 2;
const HEARTBEAT_INTERVAL_MS = 5_000;

export function createExportActivities({
  exports,
  writeSliceMs = WRITE_SLICE_MS,
}: {
  exports: ExportRunner;
  writeSliceMs?: number;
}) {
  const slots = createSemaphore(MAX_CONCURRENT_EXPORTS);

  /** Heartbeats on a timer, because a step may wait for storage. The activity timeout ends a step that hangs. */
  async function withSlot<T>(
    work: (signal: AbortSignal, onProgress: (progress: string) => void) => Promise<T>,
  ): Promise<T> {
    const context = Context.current();
    const signal = context.cancellationSignal;
    let latestProgress = '';
    const heartbeat = setInterval(() => context.heartbeat(latestProgress), HEARTBEAT_INTERVAL_MS);
    let release = () => {};
    try {
      release = await slots.acquire(signal);
      return await withApplicationFailures(() =>
        work(signal, (progress) => {
          latestProgress = progress;
        }),
      );
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
      withSlot((signal, onProgress) =>
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
