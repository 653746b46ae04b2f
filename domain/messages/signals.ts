/** Warnings that an agent should consider before it acts on a message. */
export const SIGNALS = [
  /** The sender's address did not occur in the thread before. */
  'new_participant',
  'authentication_failed',
  /** A program sent it. */
  'automated',
  /** Replies go to another address than the sender's. */
  'reply_to_differs',
  /** It contains text that people cannot see, which `extracted_text` leaves out. */
  'hidden_text',
  /** The words of a link show another host than its target. */
  'link_mismatch',
  /** It claims to come from the inbox's own domain or address, without authentication. */
  'spoofed_self',
  /** It names no author; `from` is the envelope sender. */
  'no_author',
] as const;
export type Signal = (typeof SIGNALS)[number];
