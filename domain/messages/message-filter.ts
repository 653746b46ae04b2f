import type { MessageDirection, MessageStatus } from './message.entity.ts';

/**
 * Whose messages to find, in lower case: an address (`ada@people.example`), or every address of a domain
 * (`@people.example`). Unlike words in `q`, it never matches a display name.
 */
export type AddressFilter = string & { readonly addressFilter: true };

/** @returns undefined if the text is neither an address nor a domain. */
export function parseAddressFilter(text: string): AddressFilter | undefined {
  const [, local, domain] = /^(?:(.*)@)?([^@\s]+)$/s.exec(text.trim().toLowerCase()) ?? [];
  if (domain === undefined) return undefined;
  if (local) return `${local}@${domain}` as AddressFilter;
  // A word without a dot is more likely a name; a domain of one label is written with @.
  return local === '' || domain.includes('.') ? (`@${domain}` as AddressFilter) : undefined;
}

export function matchesAddressFilter(filter: AddressFilter, email: string): boolean {
  const address = email.toLowerCase();
  return filter.startsWith('@') ? address.slice(address.lastIndexOf('@')) === filter : address === filter;
}

export interface MessageFilter {
  inboxId?: string;
  direction?: MessageDirection;
  status?: MessageStatus;
  threadId?: string;
  from?: AddressFilter;
  /** In to, cc or bcc. */
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
