import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  continueAsNew,
  defineSignal,
  isCancellation,
  proxyActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { ExportActivities } from '../../activities/exports.activities.ts';
import { type StageBoard, stageBoard } from '../stage.ts';
import {
  CANCEL_EXPORT,
  type ExportOrganizationInput,
  WRITE_HEARTBEAT_TIMEOUT_MS,
  WRITE_PATIENCE_MS,
} from './export-organization.contract.ts';

const { writeArchive } = proxyActivities<ExportActivities>({
  startToCloseTimeout: '30 minutes',
  scheduleToCloseTimeout: WRITE_PATIENCE_MS,
  heartbeatTimeout: WRITE_HEARTBEAT_TIMEOUT_MS,
  retry: { initialInterval: '5 seconds', maximumInterval: '2 minutes' },
  // What is written is given up only once nobody writes any more.
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
});
const { giveUpExport } = proxyActivities<ExportActivities>({
  startToCloseTimeout: '5 minutes',
  retry: { initialInterval: '5 seconds', maximumInterval: '2 minutes' },
});

type Stage = 'writing' | 'ready' | 'canceled' | 'failed';

const canceled = defineSignal(CANCEL_EXPORT);

/**
 * Writes the archive, a while at a time, until it is ready or somebody cancels. The export's row knows how far it came:
 * the activity may begin again anywhere, on any worker. Whatever else ends it leaves a row that says why, and nothing
 * in storage.
 *
 * @returns what became of it, for the Temporal UI.
 */
export async function exportOrganization({ exportId }: ExportOrganizationInput): Promise<string> {
  const board = stageBoard<Stage>('writing');
  const writing = new CancellationScope();
  let signaled = false;
  setHandler(
    canceled,
    () => {
      signaled = true;
      writing.cancel();
    },
    { description: 'Give up what is written so far. The API sends it, too.' },
  );
  try {
    return await writing.run(() => write(exportId, board));
  } catch (error) {
    const stage = stageAfter(error);
    if (!stage) throw error;
    board.show(stage, `The export was given up: ${stage}.`);
    const detail = signaled ? 'Canceled.' : reasonOf(error);
    await CancellationScope.nonCancellable(() => giveUpExport({ exportId, status: stage, detail }));
    if (signaled) return 'canceled';
    throw error;
  }
}

async function write(exportId: string, board: StageBoard<Stage>): Promise<string> {
  for (;;) {
    const { status, progress } = await writeArchive({ exportId });
    if (status !== 'queued' && status !== 'running') {
      if (status === 'canceled') await giveUpExport({ exportId, status, detail: 'Canceled.' });
      if (status === 'ready' || status === 'canceled' || status === 'failed') board.show(status, progress);
      return status;
    }
    board.show('writing', progress);
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof exportOrganization>({ exportId });
  }
}

/** Empty for what is neither a cancellation nor an activity that has given up. */
function stageAfter(error: unknown): 'canceled' | 'failed' | null {
  if (isCancellation(error)) return 'canceled';
  return error instanceof ActivityFailure ? 'failed' : null;
}

/** The API shows it. The failure itself may name servers and statements: who operates the service finds it in the run. */
function reasonOf(error: unknown): string {
  if (isCancellation(error)) return 'Canceled by an operator.';
  const cause = error instanceof ActivityFailure ? error.cause : error;
  const isStorage = cause instanceof ApplicationFailure && cause.type === 'StorageError';
  return isStorage
    ? 'Storage could not be read or written for too long.'
    : 'The archive could not be written.';
}
