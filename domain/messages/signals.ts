/** Warnings that an agent should consider before it acts on a message. */
export const SIGNALS = ['new_participant', 'authentication_failed', 'automated', 'reply_to_differs'] as const;
export type Signal = (typeof SIGNALS)[number];
