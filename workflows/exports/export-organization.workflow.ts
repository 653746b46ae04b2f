import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  defineSignal,
  isCancellation,
  proxyActivities,
  setHandler,
} from '@temporalio/workflow';
import type { ExportActivities } from '../../activities/exports.activities.ts';
import { findCancellation } from '../find-cancellation.ts';
import { createStageReporter, type StageReporter } from '../stage.ts';
import {
  CANCEL_EXPORT,
  type ExportOrganizationInput,
  WRITE_HEARTBEAT_TIMEOUT_MS,
  WRITE_TIMEOUT_MS,
} from './export-organization.contract.ts';

const { writeArchive } = proxyActivities<ExportActivities>({
  scheduleToCloseTimeout: WRITE_TIMEOUT_MS,
  heartbeatTimeout: WRITE_HEARTBEAT_TIMEOUT_MS,
  retry: { initialInterval: '5 seconds', maximumInterval: '2 minutes' },
  // The upload may be removed only after the activity has stopped writing.
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
});
const { abortExport } = proxyActivities<ExportActivities>({
  startToCloseTimeout: '5 minutes',
  retry: { initialInterval: '5 seconds', maximumInterval: '2 minutes' },
});

type Stage = 'writing' | 'ready' | 'canceled' | 'failed';

const canceled = defineSignal(CANCEL_EXPORT);

/**
 * Writes the archive until it is ready or canceled. If its worker dies, another one begins the archive again. On failure or
 * cancellation the row states the reason and the upload is removed.
 *
 * @returns the final status, for the Temporal UI.
 */
export async function exportOrganization({ exportId }: ExportOrganizationInput): Promise<string> {
  const reporter = createStageReporter<Stage>('writing');
  const writing = new CancellationScope();
  let signaled = false;
  setHandler(
    canceled,
    () => {
      signaled = true;
      writing.cancel();
    },
    { description: 'Cancels the export and removes its upload. The API sends this signal too.' },
  );
  try {
    return await writing.run(() => write(exportId, reporter));
  } catch (failure) {
    const error = findCancellation(failure);
    // After a signal, the attempt in progress may still fail.
    const stage = signaled ? 'canceled' : stageAfter(error);
    if (!stage) throw error;
    reporter.report(stage, `Export ${stage}.`);
    const detail = signaled ? 'Canceled.' : reasonOf(error);
    await CancellationScope.nonCancellable(() => abortExport({ exportId, status: stage, detail }));
    if (signaled) return 'canceled';
    throw error;
  }
}

async function write(exportId: string, reporter: StageReporter<Stage>): Promise<string> {
  reporter.report('writing', 'The archive is being written; the heartbeat of the activity has the progress.');
  const { status, progress } = await writeArchive({ exportId });
  if (status === 'canceled') await abortExport({ exportId, status, detail: 'Canceled.' });
  if (status === 'ready' || status === 'canceled' || status === 'failed') reporter.report(status, progress);
  return status;
}

/** Returns null unless the error is a cancellation or a failed activity. */
function stageAfter(error: unknown): 'canceled' | 'failed' | null {
  if (isCancellation(error)) return 'canceled';
  return error instanceof ActivityFailure ? 'failed' : null;
}

/** Returns the reason that the API shows. The failure itself, which may contain SQL, is visible in the run. */
function reasonOf(error: unknown): string {
  if (isCancellation(error)) return 'Canceled by an operator.';
  const cause = error instanceof ActivityFailure ? error.cause : error;
  const isStorage = cause instanceof ApplicationFailure && cause.type === 'StorageError';
  return isStorage ? 'Storage was unavailable for too long.' : 'Writing the archive failed.';
}
