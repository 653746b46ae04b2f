import { Context } from '@temporalio/activity';
import {
  type OrphanSearchOptions,
  type OrphanSearchProgress,
  registerOrphanedObjects,
} from '../domain/stored-objects/orphaned-objects.ts';
import { withApplicationFailures } from './failures.ts';

export type StoredObjectActivities = ReturnType<typeof createStoredObjectActivities>;

const NO_PROGRESS: OrphanSearchProgress = { lastKey: '', scanned: 0, registered: 0 };

export function createStoredObjectActivities(search: OrphanSearchOptions) {
  return {
    registerOrphanedObjects: (): Promise<{ scanned: number; registered: number }> =>
      withApplicationFailures(async () => {
        const context = Context.current();
        const from = (context.info.heartbeatDetails as OrphanSearchProgress | undefined) ?? NO_PROGRESS;
        const { scanned, registered } = await registerOrphanedObjects(search, from, (progress) => {
          context.heartbeat(progress);
          context.cancellationSignal.throwIfAborted();
        });
        return { scanned, registered };
      }),
  };
}
