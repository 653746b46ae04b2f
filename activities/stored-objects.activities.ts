import { Context } from '@temporalio/activity';
import {
  noteStrayObjects,
  type StrayProgress,
  type StraySearch,
} from '../domain/stored-objects/orphaned-objects.ts';
import { asFailure } from './failures.ts';

export type StorageActivities = ReturnType<typeof createStorageActivities>;

const BEGINNING: StrayProgress = { after: '', looked: 0, noted: 0 };

export function createStorageActivities(search: StraySearch) {
  return {
    noteStrayObjects: (): Promise<{ looked: number; noted: number }> =>
      asFailure(async () => {
        const context = Context.current();
        const from = (context.info.heartbeatDetails as StrayProgress | undefined) ?? BEGINNING;
        const { looked, noted } = await noteStrayObjects(search, from, (soFar) => {
          context.heartbeat(soFar);
          context.cancellationSignal.throwIfAborted();
        });
        return { looked, noted };
      }),
  };
}
