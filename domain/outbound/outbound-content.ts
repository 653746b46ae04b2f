import { AppError } from '../../platform/errors.ts';
import type { UnsubscribeLinks } from '../deliverability/unsubscribe-links.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import type { Message } from '../messages/message.entity.ts';
import type { MailAddress } from '../mime/mail-address.ts';

/** The content of a message to send, validated by the API. */
export interface OutboundContent {
  to: MailAddress[];
  cc: MailAddress[];
  bcc: MailAddress[];
  replyTo: MailAddress[];
  subject: string | null;
  textBody: string | null;
  htmlBody: string | null;
  labels: string[];
  /** Custom header fields: `X-*` and `List-Unsubscribe*`. */
  headers: Record<string, string>;
  /** Add a link for one-click unsubscription; needs a single recipient. */
  unsubscribe?: boolean;
}

export interface EnvelopeRecipient {
  field: 'to' | 'cc' | 'bcc';
  email: string;
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

export const MAX_RECIPIENTS = 50;
/** Applies to text and HTML separately, in UTF-8. */
export const MAX_BODY_BYTES = 5 * 1024 * 1024;

/**
 * Builds the envelope: each address once, in order, compared case-insensitively.
 *
 * @throws AppError `no_recipients`, or `validation_error` over {@link MAX_RECIPIENTS}.
 */
export function buildEnvelope(content: Pick<OutboundContent, 'to' | 'cc' | 'bcc'>): EnvelopeRecipient[] {
  const byAddress = new Map<string, EnvelopeRecipient>();
  for (const field of ['to', 'cc', 'bcc'] as const) {
    for (const { email } of content[field]) {
      const key = email.toLowerCase();
      if (!byAddress.has(key)) byAddress.set(key, { field, email });
    }
  }
  const recipients = [...byAddress.values()];
  if (recipients.length === 0) {
    throw new AppError('no_recipients', {
      detail: 'The message has no recipient in to, cc or bcc.',
      fix: 'Add at least one address to to, cc or bcc.',
    });
  }
  if (recipients.length > MAX_RECIPIENTS) {
    throw new AppError('validation_error', {
      detail: `The message has ${recipients.length} recipients; at most ${MAX_RECIPIENTS} are allowed.`,
      fix: `Send several messages with at most ${MAX_RECIPIENTS} recipients each.`,
      errors: [
        {
          path: '/body/to',
          message: `at most ${MAX_RECIPIENTS} recipients are allowed in to, cc and bcc in total`,
        },
      ],
    });
  }
  return recipients;
}

/** The recipients of the envelope, which may differ from those that the header shows. */
export function envelopeContent(content: OutboundContent, { envelope }: Submission): OutboundContent {
  const addressesOf = (field: EnvelopeRecipient['field']) =>
    envelope.filter((recipient) => recipient.field === field).map(({ email }) => ({ email }));
  return { ...content, to: addressesOf('to'), cc: addressesOf('cc'), bcc: addressesOf('bcc') };
}

const LINK_HEADER = 'List-Unsubscribe';
const POST_HEADER = 'List-Unsubscribe-Post';

/**
 * Adds the header fields of one-click unsubscription (RFC 8058 section 3.1) if the content asks for them. The DKIM
 * signature covers both.
 *
 * @throws AppError `unprocessable` with more than one recipient, who would unsubscribe each other, or with header fields
 * of the caller for the same purpose; `no_recipients`.
 */
export function addUnsubscribeHeaders(
  content: OutboundContent,
  { id: inboxId, organizationId }: Pick<Inbox, 'id' | 'organizationId'>,
  links: Pick<UnsubscribeLinks, 'create'>,
): OutboundContent {
  if (!content.unsubscribe) return content;
  const [recipient, ...others] = buildEnvelope(content);
  if (!recipient || others.length > 0)
    throw unprocessable(
      `unsubscribe needs a single recipient, but the message has ${others.length + 1}.`,
      'Send one message to each recipient, or omit unsubscribe.',
    );
  const taken = Object.keys(content.headers).find((name) => /^list-unsubscribe/i.test(name));
  if (taken !== undefined)
    throw unprocessable(
      `unsubscribe sets ${LINK_HEADER} itself, but headers contains ${taken}.`,
      'Omit the header, or omit unsubscribe.',
    );
  const link = links.create({ organizationId, inboxId, email: recipient.email });
  return {
    ...content,
    headers: { ...content.headers, [LINK_HEADER]: `<${link}>`, [POST_HEADER]: 'List-Unsubscribe=One-Click' },
  };
}

function unprocessable(detail: string, fix: string): AppError {
  return new AppError('unprocessable', { detail, fix });
}

/** RFC 5322 does not limit References, but header lines are limited: keep the first and the newest ids. */
const MAX_REFERENCES = 50;

/** RFC 5322 section 3.6.4: the parent's References followed by its Message-ID. */
export function buildReferences(parent: Pick<Message, 'rfcMessageId' | 'references'>): string[] {
  if (!parent.rfcMessageId) return [];
  const chain = [...parent.references.filter((id) => id !== parent.rfcMessageId), parent.rfcMessageId];
  const [first, ...rest] = chain;
  return first !== undefined && chain.length > MAX_REFERENCES
    ? [first, ...rest.slice(1 - MAX_REFERENCES)]
    : chain;
}
