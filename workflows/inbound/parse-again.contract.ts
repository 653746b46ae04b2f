/**
 * Contract of the workflow that parses a stored message again: its parser failed, or an earlier version parsed it. Started by
 * `npm run mail:parse-again`.
 */
export const PARSE_AGAIN = 'parseAgain';
/** @param requestedAt distinguishes the runs of a message. */
export const parseAgainWorkflowId = (messageId: string, requestedAt: string): string =>
  `parse-again/${messageId}/${requestedAt}`;

export interface ParseAgainInput {
  messageId: string;
}
