import { type Static, Type } from 'typebox';
import type { Inbox } from '../../domain/inboxes/inbox.entity.ts';
import { MAX_ALIASES } from '../../domain/inboxes/inbox-aliases.ts';
import { pauserOf, SENDING_PAUSERS, type SendingPauser } from '../../domain/inboxes/sending-pause.ts';
import { NO_CONTROL_CHARACTERS, singleLineText, TEXT_IN_ONE_LINE } from '../messages/addresses.ts';
import { minimalOf } from '../minimal-response.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  orNull,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

export const InboxRecord = resource(
  'inbox',
  {
    id: id('Inbox id (inb_…).'),
    email: text(320, { description: 'Address of the inbox, in lower case.' }),
    username: text(64, { description: 'The part before the @.' }),
    aliases: Type.Array(text(320), {
      maxItems: MAX_ALIASES,
      description: 'Additional addresses. Replies to mail that was sent to one of them leave from it.',
    }),
    display_name: nullableText(255, { description: 'Display name in From.' }),
    client_id: nullableText(255, { description: 'Idempotency key given at creation.' }),
    env_id: id('Environment.'),
    status: enumOf(['active', 'suspended', 'purging'], {
      description: 'purging: deleted with purge=true, and not found once nothing of it is left.',
    }),
    send_paused: Type.Boolean({
      description: 'Sending is paused, because of delivery problems or by inboxes.pause.',
    }),
    send_paused_reason: nullableText(1024, { description: 'Null unless send_paused.' }),
    send_paused_by: Type.Unsafe<SendingPauser | null>({
      type: ['string', 'null'],
      enum: [...SENDING_PAUSERS, null],
      description:
        'Who paused sending; null unless send_paused. If a person or staff did, only a person resumes it.',
    }),
    send_paused_at: nullableTimestamp('Null unless send_paused.'),
    created_at: timestamp(),
    updated_at: timestamp(),
  },
  { $id: 'Inbox', title: 'Inbox' },
);

export const MinimalInbox = minimalOf(InboxRecord, ['id', 'env_id', 'status']);
/** Spread into the config of changes that return an inbox. */
export const INBOX_RESPONSE = { readPermission: 'inboxes:read', minimalResponse: MinimalInbox } as const;

export const CreateInbox = strictObject(
  {
    username: Type.Optional(text(64, { minLength: 1, description: 'The part before the @.' })),
    domain: Type.Optional(
      text(253, { minLength: 1, description: 'A verified domain. Default: the shared domain.' }),
    ),
    display_name: Type.Optional(orNull(singleLineText(255))),
    email: Type.Optional(text(320, { minLength: 3, description: 'The whole address, instead of username.' })),
    name: Type.Optional(singleLineText(255, { description: 'The display name, if email is used.' })),
    client_id: Type.Optional(
      orNull(
        singleLineText(255, {
          minLength: 1,
          description: 'Makes creation idempotent: repeating it returns 200 and the existing inbox.',
        }),
      ),
    ),
  },
  {
    $id: 'CreateInbox',
    title: 'CreateInbox',
    description:
      'Use either username, domain and display_name, or email and name. Without an address a random one is generated.',
  },
);

export const UpdateInbox = strictObject(
  {
    display_name: Type.Optional(nullableText(255, { pattern: NO_CONTROL_CHARACTERS })),
    aliases: Type.Optional(
      Type.Array(text(320, { minLength: 3 }), {
        maxItems: MAX_ALIASES,
        description:
          'All additional addresses that the inbox has afterwards. Each counts as an inbox of the plan.',
      }),
    ),
  },
  { $id: 'UpdateInbox', title: 'UpdateInbox' },
);

export const PauseInbox = strictObject(
  {
    reason: text(500, {
      minLength: 1,
      pattern: TEXT_IN_ONE_LINE,
      description: 'Why sending is paused, in one line. Refused sends and the audit log show it.',
      examples: ['The agent answers its own newsletter'],
    }),
  },
  { $id: 'PauseInbox', title: 'PauseInbox' },
);

export function presentInbox(inbox: Inbox): Static<typeof InboxRecord> {
  return {
    object: 'inbox',
    id: inbox.id,
    email: inbox.email,
    username: inbox.username,
    aliases: inbox.aliases,
    display_name: inbox.displayName,
    client_id: inbox.clientId,
    env_id: inbox.environmentId,
    status: inbox.purgeRequestedAt ? 'purging' : inbox.status,
    send_paused: inbox.sendPaused,
    send_paused_reason: inbox.sendPausedReason,
    send_paused_by: pauserOf(inbox),
    send_paused_at: inbox.sendPausedAt?.toISOString() ?? null,
    created_at: inbox.createdAt.toISOString(),
    updated_at: inbox.updatedAt.toISOString(),
  };
}
