import { AppError } from '../../platform/errors.ts';
import type { UnsubscribeLinks } from '../deliverability/unsubscribe-links.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { buildEnvelope, type OutboundContent } from './outbound-content.ts';

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
