import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Attachment } from '../attachments/attachment.entity.ts';
import type { Scope } from '../identity/scope.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import type { Message } from '../messages/message.entity.ts';
import type { MessageDetails } from '../messages/message-details.ts';
import { placeMessage } from '../messages/place-message.ts';
import { createOutboundMessage } from './create-outbound-message.ts';
import type { EnvelopeRecipient, OutboundContent } from './outbound-content.ts';

/** A mail client that authenticated with an inbox's password. */
export interface Submitter {
  inboxId: string;
  email: string;
  /** When the password that the client used was set. */
  rotatedAt: Date;
  scope: Scope;
}

/** What a message that was submitted over SMTP has beyond its content. */
export interface Submission {
  /** Storage key of the submitted bytes. */
  storageKey: string;
  envelope: EnvelopeRecipient[];
  messageId: string | null;
  inReplyTo: string | null;
  references: string[];
  fromName: string | null;
}

export interface SubmittedMessage {
  inbox: Inbox;
  content: OutboundContent;
  submission: Submission;
  attachments: Attachment[];
  /** The draft that waited for approval; null if it did not. */
  draftId?: string | null;
}

/** Creates and queues the message of a submission in the caller's transaction, in the thread that its ids name. */
export async function createSubmittedMessage(
  transaction: Transaction,
  outbox: Outbox,
  { inbox, content, submission, attachments, draftId = null }: SubmittedMessage,
): Promise<MessageDetails> {
  const { storageKey, envelope, messageId, inReplyTo, references, fromName } = submission;
  const { thread } = await placeMessage(transaction, outbox, {
    inbox,
    mail: { messageId, inReplyTo, references, subject: content.subject ?? '' },
    isTrusted: true,
    correspondents: null,
    at: new Date(),
  });
  const created = createOutboundMessage(transaction, outbox, {
    inbox,
    content,
    envelope,
    thread,
    parent: null,
    rfcMessageId: messageId,
    draftId,
    // The client's own header is sent.
    autoSubmitted: false,
    attachments,
  });
  Object.assign(created.message, {
    submittedKey: storageKey,
    inReplyTo,
    references,
    fromName,
  } satisfies Partial<Message>);
  return created;
}

/** The recipients of the envelope, which may differ from those that the header shows. */
export function envelopeContent(content: OutboundContent, { envelope }: Submission): OutboundContent {
  const addressesOf = (field: EnvelopeRecipient['field']) =>
    envelope.filter((recipient) => recipient.field === field).map(({ email }) => ({ email }));
  return { ...content, to: addressesOf('to'), cc: addressesOf('cc'), bcc: addressesOf('bcc') };
}
