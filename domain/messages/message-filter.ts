import type { AddressFilter } from './address-filter.ts';
import type { MessageDirection, MessageStatus } from './message.entity.ts';

export interface MessageFilter {
  inboxId?: string;
  direction?: MessageDirection;
  status?: MessageStatus;
  threadId?: string;
  /** See `address-filter.ts`. */
  from?: AddressFilter;
  /** In to, cc or bcc; see `address-filter.ts`. */
  to?: AddressFilter;
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
