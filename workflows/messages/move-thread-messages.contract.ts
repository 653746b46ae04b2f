/** Contract of moving the messages of a merged thread that the merge itself left behind. */
export const MOVE_THREAD_MESSAGES = 'moveThreadMessages';
export const moveThreadMessagesWorkflowId = (threadId: string): string => `thread-move/${threadId}`;

export interface MoveThreadMessagesInput {
  /** The merged thread, whose id is an alias. */
  threadId: string;
}
