import type { ThreadMoveService } from '../domain/messages/thread-moves.ts';
import { withApplicationFailures } from './failures.ts';
import { heartbeatBetweenSteps } from './heartbeats.ts';

export type MessageActivities = ReturnType<typeof createMessageActivities>;

export function createMessageActivities({ threadMoves }: { threadMoves: ThreadMoveService }) {
  return {
    /** Idempotent: a retry continues with the remaining messages. */
    moveMergedMessages: ({ threadId }: { threadId: string }): Promise<number> =>
      withApplicationFailures(() => threadMoves.move(threadId, (moved) => heartbeatBetweenSteps(moved))),
  };
}
