import { type Static, Type } from 'typebox';
import type { AgentText } from '../../domain/messages/agent-text.ts';
import { describeFailure, FAILURE_TYPES } from '../../domain/messages/delivery-failure.ts';
import {
  isAuthenticated,
  MESSAGE_STATUSES,
  type MessageAuthentication,
  SIGNALS,
} from '../../domain/messages/message.entity.ts';
import type { MessageDetails } from '../../domain/messages/message-details.ts';
import { MAX_INVITES } from '../../domain/mime/invites/find-invites.ts';
import { enumOf, id, ref, resource, strictObject, text, timestamp } from '../schemas.ts';
import { AddressSeen } from './addresses.ts';
import {
  findingFields,
  MessageCode,
  MessageInjection,
  MessageInvite,
  presentFindings,
} from './findings.schemas.ts';

const MAX_TEXT = 1_000_000;
const optionalAddresses = Type.Optional(Type.Array(ref(AddressSeen), { maxItems: 10_000 }));

const AgentCode = strictObject({
  ...MessageCode.properties,
  origin_domain: Type.Optional(text(255, { description: 'Enter the code on this domain alone.' })),
});
const { dismissed_at, dismissed_by, ...verdict } = MessageInjection.properties;
const AgentInjection = strictObject({
  ...verdict,
  dismissed_at: Type.Optional(timestamp('When a person dismissed the alarm.')),
  dismissed_by: Type.Optional(id('User (usr_…) who dismissed it.')),
});
const { attendees, ...invited } = MessageInvite.properties;
const AgentInvite = strictObject({
  ...Object.fromEntries(Object.keys(invited).map((name) => [name, Type.Optional(text(1_000))])),
  attendees: Type.Optional(attendees),
});

/** One flat shape without empty fields, for programs that read mail with a language model. */
export const AgentMessage = resource(
  'message',
  {
    id: id('Message id (msg_…).'),
    thread_id: id('Thread of the message.'),
    inbox_id: id('Inbox the message belongs to.'),
    direction: enumOf(['inbound', 'outbound']),
    status: enumOf(MESSAGE_STATUSES),
    from: ref(AddressSeen),
    to: optionalAddresses,
    cc: optionalAddresses,
    subject: Type.Optional(text(MAX_TEXT)),
    date: timestamp('Of its header, if that can be read; otherwise when it arrived or was sent.'),
    text: Type.Optional(
      text(MAX_TEXT, {
        description:
          'What is new and visible in it, of both directions. URLs over 80 characters are cut to their host; links has them whole.',
      }),
    ),
    truncated: Type.Optional(Type.Literal(true, { description: 'The text goes on.' })),
    next_offset: Type.Optional(
      Type.Integer({ minimum: 0, description: 'The offset of the rest of the text; on one message.' }),
    ),
    attachments: Type.Optional(
      Type.Array(
        strictObject({
          id: id('Attachment id.'),
          filename: text(1024),
          content_type: text(255),
          size_bytes: Type.Integer({ minimum: 0 }),
        }),
        { maxItems: 10_000 },
      ),
    ),
    labels: Type.Optional(Type.Array(text(255), { maxItems: 1000 })),
    signals: Type.Optional(Type.Array(enumOf(SIGNALS), { maxItems: SIGNALS.length })),
    injection: Type.Optional(AgentInjection),
    codes: Type.Optional(Type.Array(AgentCode, { maxItems: 3 })),
    links: Type.Optional(findingFields.links),
    links_truncated: Type.Optional(
      Type.Literal(true, { description: 'links=all: the message has more links than the service keeps.' }),
    ),
    invites: Type.Optional(Type.Array(AgentInvite, { maxItems: MAX_INVITES })),
    authentication: Type.Optional(
      strictObject(
        { spf: text(64), dkim: text(64), dmarc: text(64) },
        { description: 'Only if the author is not authenticated.' },
      ),
    ),
    bounce: Type.Optional(
      strictObject(
        {
          type: enumOf(FAILURE_TYPES),
          email: Type.Optional(text(1024)),
          code: Type.Optional(text(32, { description: 'Enhanced status code (RFC 3463).' })),
          reason: Type.Optional(text(4096)),
          suppressed: Type.Boolean({ description: 'The service sends no more to the address.' }),
          next: text(512, { description: 'What to do.' }),
        },
        { description: 'Only if it did not reach a recipient: the first of them.' },
      ),
    ),
    parse_error: Type.Optional(text(1024, { description: 'Which part of the message could not be read.' })),
  },
  {
    $id: 'AgentMessage',
    title: 'AgentMessage',
    description: 'view=agent: what an agent needs of a message, without empty fields.',
  },
);
export type AgentMessage = Static<typeof AgentMessage>;

export interface AgentParts {
  text: AgentText;
  /** A list shows less. */
  isListed?: boolean;
  isSuppressed(email: string): boolean;
}

const LISTED_KINDS = new Set(['verify', 'reset', 'sign_in']);

export function presentAgentMessage(details: MessageDetails, parts: AgentParts): AgentMessage {
  const { message, attachments } = details;
  const { text: part, isListed = false } = parts;
  const { injection, codes, links, invites } = presentFindings(message);
  return omitEmpty({
    object: 'message' as const,
    id: message.id,
    thread_id: message.threadId,
    inbox_id: message.inboxId,
    direction: message.direction,
    status: message.status,
    from: { email: message.fromEmail, ...(message.fromName ? { name: message.fromName } : {}) },
    to: message.to,
    cc: message.cc,
    subject: message.subject,
    date: readDate(message).toISOString(),
    text: part.text,
    truncated: part.isTruncated ? (true as const) : undefined,
    next_offset: isListed ? undefined : (part.nextOffset ?? undefined),
    attachments: attachments.map(({ id, filename, contentType, sizeBytes }) => ({
      id,
      filename,
      content_type: contentType,
      size_bytes: sizeBytes,
    })),
    labels: message.labels,
    signals: message.signals,
    injection: injection.level === 'none' ? undefined : omitEmpty(injection),
    codes: codes.map(({ origin_domain, ...code }) => ({
      ...code,
      ...(origin_domain ? { origin_domain } : {}),
    })),
    links: isListed ? links.filter(({ kind }) => LISTED_KINDS.has(kind)) : links,
    links_truncated: message.allLinks && message.hasMoreLinks ? (true as const) : undefined,
    invites: invites.map((invite) => omitEmpty({ ...invite })),
    authentication: presentFailedAuthentication(message.authentication),
    bounce: presentFailure(details, parts),
    parse_error: message.parseError?.slice(0, 1024),
  }) as AgentMessage;
}

/** Without undefined, null, empty strings and empty lists. */
function omitEmpty(fields: Record<string, unknown>): Record<string, unknown> {
  const isEmpty = (value: unknown) =>
    value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value)));
}

function readDate({ direction, headers, sentAt, receivedAt, createdAt }: MessageDetails['message']): Date {
  const stated = direction === 'inbound' ? new Date(headers?.date?.slice(0, 100) ?? '') : undefined;
  const isReadable =
    stated !== undefined && stated.getUTCFullYear() >= 1970 && stated.getUTCFullYear() <= 9999;
  return isReadable ? stated : (sentAt ?? receivedAt ?? createdAt);
}

function presentFailedAuthentication(results: MessageAuthentication | null) {
  if (results === null) return undefined;
  const { spf, dkim, dmarc } = results;
  return isAuthenticated(results) ? undefined : { spf, dkim, dmarc };
}

function presentFailure({ message, recipients }: MessageDetails, { isSuppressed }: AgentParts) {
  const failure = describeFailure(message, recipients);
  if (failure === null) return undefined;
  const { type, email, code, reason, next } = failure;
  return {
    type,
    ...(email === null ? {} : { email }),
    ...(code === null ? {} : { code }),
    ...(reason === null ? {} : { reason: reason.slice(0, 4096) }),
    suppressed: email !== null && isSuppressed(email),
    next,
  };
}
