import { type TSchema, Type } from 'typebox';
import { enumOf, strictObject } from '../../schemas.ts';
import type { AnswerFields, JsonType } from '../tool.ts';

/** Arguments of several tools. The operation checks their sizes: a limit here would cost each model that reads the list. */
export const optional = Type.Optional;
export const text = (description?: string) => Type.String(description ? { description } : {});
export const integer = (description?: string) => Type.Integer(description ? { description } : {});
export const texts = (description?: string) => Type.Array(Type.String(), description ? { description } : {});
export const input = <Fields extends Record<string, TSchema>>(fields: Fields) => strictObject(fields);
export { enumOf };

export const page = { limit: optional(integer()), cursor: optional(text('next_cursor of the page before')) };

const typed =
  (type: JsonType | readonly JsonType[]) =>
  (...names: string[]): AnswerFields =>
    Object.fromEntries(names.map((name) => [name, { type }]));
/** Fields of an answer, by their JSON type. */
export const strings = typed('string');
export const stringsOrNull = typed(['string', 'null']);
export const booleans = typed('boolean');
export const integers = typed('integer');
export const integersOrNull = typed(['integer', 'null']);
export const objects = typed('object');
export const objectsOrNull = typed(['object', 'null']);
export const arrays = typed('array');

export const PAGE = { ...arrays('data'), ...booleans('has_more'), ...stringsOrNull('next_cursor') };
/** A page that a model reads costs less than one that a program reads. */
export const DEFAULT_LIMIT = 10;

export const textPart = {
  max_chars: optional(integer()),
  offset: optional(integer('next_offset of the part before')),
};

/** Fields of `view=agent`, in which every tool shows messages. */
export const MESSAGE = {
  ...strings(
    'object',
    'id',
    'thread_id',
    'inbox_id',
    'direction',
    'status',
    'subject',
    'date',
    'text',
    'parse_error',
  ),
  ...objects('from', 'injection', 'authentication', 'bounce'),
  ...arrays('to', 'cc', 'attachments', 'labels', 'signals', 'codes', 'links', 'invites'),
  ...booleans('truncated', 'links_truncated'),
  ...integers('next_offset'),
};

/** Fields of a message that was sent, or of its receipt. */
export const SENT_MESSAGE = {
  ...strings(
    'object',
    'id',
    'inbox_id',
    'env_id',
    'thread_id',
    'direction',
    'status',
    'subject',
    'date',
    'text',
  ),
  ...objects('from', 'bounce'),
  ...arrays('to', 'cc', 'bcc', 'attachments', 'labels'),
  ...booleans('truncated'),
};

/** Fields of a sent message, and of a draft that waits. */
export const SENT = {
  ...SENT_MESSAGE,
  ...strings('text_body', 'in_reply_to', 'send_at', 'send_status', 'note'),
  ...objects('approval'),
  ...integers('version'),
  ...booleans('replayed'),
};
