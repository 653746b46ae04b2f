/** Contract of the workflow that parses a stored message again whose parser failed. Started by `npm run mail:parse-again`. */
export const PARSE_AGAIN = 'parseAgain';
/** @param requestedAt distinguishes the runs of a message. */
export const parseAgainWorkflowId = (messageId: string, requestedAt: string): string =>
  `parse-again/${messageId}/${requestedAt}`;

export interface ParseAgainInput {
  messageId: string;
}
