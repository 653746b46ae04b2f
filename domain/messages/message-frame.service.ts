import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import type { Storage } from '../../platform/storage.ts';
import { StorageError } from '../../platform/storage-error.ts';
import { columnsWithin, type Scope } from '../identity/scope.ts';
import { ConversionStoppedError, type HtmlConverter } from '../mime/converter/pool.ts';
import { describeUrl, type ShownUrl } from '../mime/links/find-links.ts';
import { hasRemoteImages, listFrameLinks, listInlineImages, prepareFrameHtml } from './frame-html.ts';

/** For HTML that is not that of a message, such as a draft's. */
export { hasRemoteImages, listFrameLinks, prepareFrameHtml };

/** The HTML of a message for a frame. */
export interface MessageFrame {
  /** Sanitized; null if the message has no HTML, or if the HTML could not be read. */
  html: string | null;
  /** It has images of other servers, which are shown only on request. */
  hasRemoteImages: boolean;
}

export interface MessageFrameOptions {
  database: Database;
  converter: Pick<HtmlConverter, 'forOrganization'>;
  storage: Pick<Storage, 'getBytes'>;
}

export type MessageFrameService = ReturnType<typeof createMessageFrameService>;

const MAX_FRAME_BYTES = 1024 * 1024;
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** Of all images of a message that are shown within its HTML. */
const MAX_IMAGE_BYTES = 2 * 1024 * 1024;
const SHOWN_IMAGES = 20;

/** The HTML of a message as people look at it, and the links in it. */
export function createMessageFrameService({ database, converter, storage }: MessageFrameOptions) {
  async function readSanitized(scope: Scope, messageId: string) {
    const message = await database.read(scope, ({ db }) => findHtml(db, scope, messageId));
    if (!message) throw notFound('message', messageId);
    const { htmlBody } = message;
    if (!htmlBody?.trim()) return { message, sanitized: null };
    // A conversion may take a second, so no transaction waits for it.
    const sanitized = await converter
      .forOrganization(scope.organizationId)
      .sanitize(htmlBody, { maxBytes: MAX_FRAME_BYTES, keepInlineImages: true })
      .catch((error: unknown) => {
        if (error instanceof ConversionStoppedError) return null;
        throw error;
      });
    return { message, sanitized };
  }

  async function readInlineImages(
    scope: Scope,
    messageId: string,
    sanitized: string,
  ): Promise<Map<string, string>> {
    const wanted = listInlineImages(sanitized);
    if (wanted.size === 0) return new Map();
    const files = await database.read(scope, ({ db }) => findImages(db, messageId));
    const images = new Map<string, string>();
    let bytesLeft = MAX_IMAGE_BYTES;
    for (const { contentId, contentType, sizeBytes, storageKey } of files) {
      if (contentId === null || !wanted.has(contentId) || sizeBytes > bytesLeft) continue;
      bytesLeft -= sizeBytes;
      const bytes = await storage.getBytes(storageKey, sizeBytes).catch((error: unknown) => {
        if (error instanceof StorageError) return null;
        throw error;
      });
      if (bytes) images.set(contentId, `data:${contentType};base64,${bytes.toString('base64')}`);
    }
    return images;
  }

  return {
    /**
     * @param linkTo the page that opens a link, see {@link prepareFrameHtml}.
     * @throws AppError `not_found`.
     */
    async get(
      scope: Scope,
      messageId: string,
      { linkTo, allowsRemoteImages }: { linkTo: (index: number) => string; allowsRemoteImages: boolean },
    ): Promise<MessageFrame> {
      const { sanitized } = await readSanitized(scope, messageId);
      if (sanitized === null) return { html: null, hasRemoteImages: false };
      const inlineImages = await readInlineImages(scope, messageId, sanitized);
      return {
        html: prepareFrameHtml(sanitized, { linkTo, allowsRemoteImages, inlineImages }),
        hasRemoteImages: hasRemoteImages(sanitized),
      };
    },

    /** The link with this number in the frame of the message. @throws AppError `not_found`. */
    async getLink(scope: Scope, messageId: string, index: number): Promise<ShownUrl> {
      const { message, sanitized } = await readSanitized(scope, messageId);
      const url = listFrameLinks(sanitized ?? '')[index];
      const shown = url === undefined ? null : describeUrl(url, message.fromEmail);
      if (shown === null) throw notFound('link', String(index));
      return shown;
    },
  };
}

const findHtml = (db: Db, scope: Scope, messageId: string) =>
  db
    .selectFrom('messages')
    .select(['html_body as htmlBody', 'from_email as fromEmail'])
    .where('id', '=', messageId)
    .where((eb) => eb.and(columnsWithin(scope)))
    .executeTakeFirst();

const findImages = (db: Db, messageId: string) =>
  db
    .selectFrom('attachments')
    .select([
      'content_id as contentId',
      'content_type as contentType',
      'size_bytes as sizeBytes',
      'storage_key as storageKey',
    ])
    .where('message_id', '=', messageId)
    .where('content_id', 'is not', null)
    .where('content_type', 'in', IMAGE_TYPES)
    .where('size_bytes', '<=', MAX_IMAGE_BYTES)
    .orderBy('position')
    .limit(SHOWN_IMAGES)
    .execute();
