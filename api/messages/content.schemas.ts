import { type Static, Type } from 'typebox';
import { MAX_BODY_BYTES } from '../../domain/outbound/outbound-content.ts';
import { AttachmentInput } from '../attachments/attachments.schemas.ts';
import { nullableText, ref, text } from '../schemas.ts';
import { addressList, NO_CONTROL_CHARACTERS } from './addresses.ts';

/** Limits of the design (api.md, "Attachment"). */
export { MAX_BODY_BYTES };
export const MAX_SUBJECT_LENGTH = 998;
/** Body limit of routes with message content; other routes have 1 MiB. */
export const CONTENT_BODY_LIMIT_BYTES = 8 * 1024 * 1024;

/** One line without surrounding spaces: people cannot tell `" vip"` from `"vip"`. */
export const LABEL_PATTERN = '^(?!\\s)[^\\u0000-\\u001f\\u007f]*(?<!\\s)$';
export const label = () => text(64, { minLength: 1, pattern: LABEL_PATTERN });
const labels = Type.Array(label(), { maxItems: 50, uniqueItems: true });

export const HEADER_NAME_PATTERN = '^[!-9;-~]+$';
const headers = Type.Unsafe<Record<string, string>>({
  type: 'object',
  description: 'Only X-* and List-Unsubscribe*; names are case-insensitive and unique, values are required.',
  maxProperties: 50,
  propertyNames: { type: 'string', maxLength: 76, pattern: HEADER_NAME_PATTERN },
  additionalProperties: { type: 'string', maxLength: 998, pattern: NO_CONTROL_CHARACTERS },
});

const unsubscribe = Type.Boolean({
  description:
    'Add List-Unsubscribe and List-Unsubscribe-Post (RFC 8058), so that the recipient can unsubscribe with one click. Needs a single recipient. Default: false.',
});

const attachments = Type.Array(ref(AttachmentInput), {
  maxItems: 100,
  description: 'Files, at most 25 MiB in total.',
});

const nullable = <Value>(schema: object) => Type.Unsafe<Value | null>({ anyOf: [schema, { type: 'null' }] });

export const sendAt = Type.Optional(
  Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'date-time',
    maxLength: 40,
    description:
      'Sends automatically at this time, or immediately if it is in the past: the response is 202 with the scheduled draft.',
  }),
);

/** Content fields of request bodies. In a PATCH `null` clears a field and an omitted one is kept; in a POST both mean none. */
export const contentFields = {
  to: Type.Optional(nullable<Static<ReturnType<typeof addressList>>>(addressList('Recipients.'))),
  cc: Type.Optional(nullable<Static<ReturnType<typeof addressList>>>(addressList('Copies.'))),
  bcc: Type.Optional(nullable<Static<ReturnType<typeof addressList>>>(addressList('Blind copies.'))),
  reply_to: Type.Optional(
    nullable<Static<ReturnType<typeof addressList>>>(
      addressList('Reply-To addresses; replies go to the inbox if empty.'),
    ),
  ),
  subject: Type.Optional(nullableText(MAX_SUBJECT_LENGTH, { pattern: NO_CONTROL_CHARACTERS })),
  text_body: Type.Optional(nullableText(MAX_BODY_BYTES)),
  html_body: Type.Optional(nullableText(MAX_BODY_BYTES)),
  labels: Type.Optional(nullable<string[]>(labels)),
  headers: Type.Optional(nullable<Record<string, string>>(headers)),
  unsubscribe: Type.Optional(nullable<boolean>(unsubscribe)),
  attachments: Type.Optional(nullable<Static<typeof attachments>>(attachments)),
};
