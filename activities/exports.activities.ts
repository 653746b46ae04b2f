import { setInterval } from 'node:timers';
import { Context } from '@temporalio/activity';
import type { ExportRunner } from '../domain/exports/export-runner.ts';
import { createSlots } from '../platform/slots.ts';
import { WRITE_FOR_MS, type WrittenSoFar } from '../workflows/exports/export-organization.contract.ts';
import { asFailure } from './failures.ts';

export type ExportActivities = ReturnType<typeof createExportActivities>;

/** Each holds a part of its archive in memory. */
const EXPORTS_AT_ONCE = 2;
const HEARTBEAT_EVERY_MS = 5_000;

export function createExportActivities({
  exports,
  writeForMs = WRITE_FOR_MS,
}: {
  exports: ExportRunner;
  writeForMs?: number;
}) {
  const slots = createSlots(EXPORTS_AT_ONCE);

  /** Beats by the clock: a step may wait for storage, and what hangs ends with the attempt's time. */
  async function inTurn<T>(
    work: (signal: AbortSignal, progressed: (soFar: string) => void) => Promise<T>,
  ): Promise<T> {
    const context = Context.current();
    const signal = context.cancellationSignal;
    let soFar = '';
    const heart = setInterval(() => context.heartbeat(soFar), HEARTBEAT_EVERY_MS);
    let release = () => {};
    try {
      release = await slots.take(signal);
      return await asFailure(() =>
        work(signal, (progress) => {
          soFar = progress;
        }),
      );
    } catch (error) {
      // What Temporal expects of an activity that was told to stop.
      if (signal.aborted) return await context.cancelled;
      throw error;
    } finally {
      release();
      clearInterval(heart);
    }
  }

  return {
    /** Goes on from where the last attempt put a part in storage; what it did since then is done once more. */
    writeArchive: ({ exportId }: { exportId: string }): Promise<WrittenSoFar> =>
      inTurn((signal, progressed) =>
        exports.write(exportId, { until: Date.now() + writeForMs, signal, progressed }),
      ),

    giveUpExport: ({
      exportId,
      status,
      detail,
    }: {
      exportId: string;
      status: 'failed' | 'canceled';
      detail: string;
    }): Promise<string> => asFailure(() => exports.giveUp(exportId, status, detail)),
  };
}
