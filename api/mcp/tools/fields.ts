import { type TSchema, Type } from 'typebox';
import { enumOf, strictObject } from '../../schemas.ts';

/** Arguments of several tools. The operation checks their sizes: a limit here would cost each model that reads the list. */
export const some = Type.Optional;
export const word = (description?: string) => Type.String(description ? { description } : {});
export const whole = (description?: string) => Type.Integer(description ? { description } : {});
export const words = (description?: string) => Type.Array(Type.String(), description ? { description } : {});
export const input = <Fields extends Record<string, TSchema>>(fields: Fields) => strictObject(fields);
export { enumOf };

export const page = { limit: some(whole()), cursor: some(word('next_cursor of the page before')) };
export const PAGE = ['data', 'has_more', 'next_cursor'] as const;
/** A page that a model reads costs less than one that a program reads. */
export const DEFAULT_LIMIT = 10;

export const textPart = {
  max_chars: some(whole()),
  offset: some(whole('next_offset of the part before')),
};

/** Fields of `view=agent`, in which every tool shows messages. */
export const MESSAGE = [
  'object',
  'id',
  'thread_id',
  'inbox_id',
  'direction',
  'status',
  'from',
  'to',
  'cc',
  'subject',
  'date',
  'text',
  'truncated',
  'next_offset',
  'attachments',
  'labels',
  'signals',
  'injection',
  'codes',
  'links',
  'invites',
  'authentication',
  'bounce',
  'links_truncated',
  'parse_error',
] as const;

/** Fields of a sent message, and of a draft that waits. */
export const SENT = [
  'object',
  'id',
  'inbox_id',
  'env_id',
  'thread_id',
  'direction',
  'status',
  'from',
  'to',
  'cc',
  'bcc',
  'subject',
  'date',
  'text',
  'text_body',
  'attachments',
  'labels',
  'in_reply_to',
  'send_at',
  'send_status',
  'approval',
  'version',
  'bounce',
  'truncated',
  'replayed',
  'note',
] as const;
