import type { MessageStatus } from '../messages/message.entity.ts';

/** What the send workflow has to do next. */
export interface SendState {
  /** Status of the message; `deleted` if it no longer exists. */
  status: MessageStatus | 'deleted';
  /** At least one recipient remains to be transmitted to. */
  hasUnsent: boolean;
  /** Numbers of the recipients for whom it is unknown whether the relay accepted the message. */
  ambiguous: number[];
  /** What to search the relay's log for: the part of the Message-ID before `@`. Only with `ambiguous` recipients. */
  messageIdLeft?: string;
}

/** Nothing remains to be done. */
export const settledAs = (status: SendState['status']): SendState => ({
  status,
  hasUnsent: false,
  ambiguous: [],
});
