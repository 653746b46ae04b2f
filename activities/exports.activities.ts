import { setInterval } from 'node:timers';
import { Context } from '@temporalio/activity';
import type { ExportRunner } from '../domain/exports/export-runner.ts';
import { acquireBriefly, type FairShare, organizationHolder } from '../platform/concurrency/fair-share.ts';
import type { ExportResult } from '../workflows/exports/export-organization.contract.ts';
import { withApplicationFailures } from './failures.ts';

export type ExportActivities = ReturnType<typeof createExportActivities>;

/** When an export tries again that found no slot. */
const BUSY_RETRY_MS = 5_000;
const HEARTBEAT_INTERVAL_MS = 5_000;
/** An export without progress for this time has no heartbeats any more, so that Temporal starts it again. */
const MAX_STANDSTILL_MS = 10 * 60_000;

export function createExportActivities({
  exports,
  shares,
}: {
  exports: Pick<ExportRunner, 'findOrganization' | 'write' | 'abort'>;
  shares: FairShare;
}) {
  /** Heartbeats on a timer, because a step may wait for storage. */
  async function withSlot<T>(
    exportId: string,
    work: (signal: AbortSignal, onProgress: (progress: string) => void) => Promise<T>,
  ): Promise<T> {
    const context = Context.current();
    const signal = context.cancellationSignal;
    let latest = { progress: '', at: Date.now() };
    const heartbeat = setInterval(() => {
      if (Date.now() - latest.at < MAX_STANDSTILL_MS) context.heartbeat(latest.progress);
    }, HEARTBEAT_INTERVAL_MS);
    let release = () => {};
    try {
      return await withApplicationFailures(async () => {
        const holders = [organizationHolder((await exports.findOrganization(exportId)) ?? '')];
        release = await acquireBriefly(shares, { holders }, BUSY_RETRY_MS);
        return work(signal, (progress) => {
          latest = { progress, at: Date.now() };
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
    /** Writes the archive from its beginning, also when it is repeated. */
    writeArchive: ({ exportId }: { exportId: string }): Promise<ExportResult> =>
      withSlot(exportId, (signal, onProgress) => exports.write(exportId, { signal, onProgress })),

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
