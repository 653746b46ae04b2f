import type { Readable } from 'node:stream';
import type { Database } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Storage } from '../../platform/storage.ts';
import { StorageError } from '../../platform/storage-error.ts';
import { createFileLink, type FileLink } from '../attachments/attachment.service.ts';
import { columnsWithin, type Scope } from '../identity/scope.ts';
import type { Message } from './message.entity.ts';

export type RawMessageService = ReturnType<typeof createRawMessageService>;

export interface RawMessageServiceOptions {
  database: Database;
  storage: Pick<Storage, 'presignGet' | 'getStream'>;
}

export function createRawMessageService({ database, storage }: RawMessageServiceOptions) {
  return {
    /**
     * Creates a link to the exact bytes sent or received.
     *
     * @throws AppError `not_found`; `conflict` if an outbound message is not built yet.
     */
    async get(scope: Scope, messageId: string): Promise<{ link: FileLink; sizeBytes: number }> {
      const { id, rawKey, sizeBytes } = await findRaw(database, scope, messageId);
      const link = await createFileLink(storage, scope, {
        storageKey: rawKey,
        filename: `${id}.eml`,
        contentType: 'message/rfc822',
      });
      return { link, sizeBytes };
    },

    /**
     * Opens the exact bytes sent or received. The caller reads the stream to its end, or destroys it.
     *
     * @throws AppError `not_found`; `conflict` if an outbound message is not built yet; `unavailable`.
     */
    async open(scope: Scope, messageId: string): Promise<{ bytes: Readable; sizeBytes: number }> {
      const { rawKey, sizeBytes } = await findRaw(database, scope, messageId);
      const bytes = await storage.getStream(rawKey).catch((error: unknown) => {
        if (!(error instanceof StorageError)) throw error;
        throw new AppError('unavailable', {
          detail: 'The file storage is not responding.',
          fix: 'Retry the request later.',
          cause: error,
        });
      });
      return { bytes, sizeBytes };
    },
  };
}

async function findRaw(database: Database, scope: Scope, messageId: string) {
  const message = await database.read(scope, ({ db }) =>
    db
      .selectFrom('messages')
      .select(['id', 'status', 'raw_key as rawKey', 'size_bytes as sizeBytes'])
      .where('id', '=', messageId)
      .where((eb) => eb.and(columnsWithin(scope)))
      .executeTakeFirst(),
  );
  if (!message) throw notFound('message', messageId);
  const { rawKey } = message;
  if (rawKey === null) throw rawNotAvailable(message);
  return { ...message, rawKey };
}

/** A message is built at dispatch, so a message that is never sent has no bytes. */
function rawNotAvailable({ status }: Pick<Message, 'status'>): AppError {
  const waiting = status === 'queued' || status === 'sending';
  return new AppError('conflict', {
    detail: waiting
      ? `The message is ${status}: its bytes are not built yet.`
      : `The message is ${status}: it was never transmitted, so it has no bytes.`,
    fix: waiting
      ? 'Retry the request when the message is sent: GET /api/v1/messages/{id}/wait.'
      : 'Read its text_body and html_body instead: GET /api/v1/messages/{id}.',
    extensions: { message_status: status },
  });
}
