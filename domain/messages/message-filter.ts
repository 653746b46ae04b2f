import type { MessageDirection, MessageStatus } from './message.entity.ts';

export interface MessageFilter {
  inboxId?: string;
  direction?: MessageDirection;
  status?: MessageStatus;
  threadId?: string;
  /** Full address, case-insensitive. */
  from?: string;
  /** Full address in to, cc or bcc, case-insensitive. */
  to?: string;
  /** Part of the subject, case-insensitive. */
  subject?: string;
  hasAttachments?: boolean;
  /** Words and operators, see `search-query.ts`. */
  q?: string;
  /** Created before this time. */
  before?: Date;
  /** Created at or after this time. */
  after?: Date;
  label?: string;
}
