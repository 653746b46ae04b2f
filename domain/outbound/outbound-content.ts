import { AppError } from '../../platform/errors.ts';
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
