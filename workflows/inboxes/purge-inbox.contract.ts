/** Contract of deleting all messages of a deleted inbox. */
export const PURGE_INBOX = 'purgeInbox';
export const purgeInboxWorkflowId = (inboxId: string): string => `purge/${inboxId}`;

export interface PurgeInboxInput {
  inboxId: string;
}
