import { type Static, Type } from 'typebox';
import type { Attachment } from '../../domain/attachments/attachment.entity.ts';
import type { FileLink } from '../../domain/attachments/attachment.service.ts';
import { enumOf, id, nullableText, strictObject, text, timestamp } from '../schemas.ts';

/** As long as the body it travels in may be. */
const MAX_BASE64_CHARACTERS = 8 * 1024 * 1024;
const NO_CONTROLS = '^[^\\u0000-\\u001f\\u007f]*$';

/** A file of a mail to be sent: its bytes, or an attachment there is. */
export const AttachmentInput = strictObject(
  {
    filename: Type.Optional(
      text(255, {
        minLength: 1,
        pattern: NO_CONTROLS,
        description: 'Required with content. A path loses its folders.',
      }),
    ),
    content_type: Type.Optional(
      text(255, {
        description: 'Media type (RFC 2045), never multipart/*; application/octet-stream where omitted.',
      }),
    ),
    content: Type.Optional(
      text(MAX_BASE64_CHARACTERS, {
        description:
          'The bytes, base64 (RFC 4648 section 4, with padding, no line ends), at most 5 MiB decoded.',
      }),
    ),
    attachment_id: Type.Optional(
      id('In place of content: an upload, or an attachment of any message or draft in reach (att_…).'),
    ),
    content_id: Type.Optional(
      text(255, {
        minLength: 1,
        pattern: '^[!-;=?-~]+$',
        description: 'Shown where the HTML has <img src="cid:…">; without angle brackets.',
      }),
    ),
    disposition: Type.Optional(
      enumOf(['attachment', 'inline'], { description: 'inline where omitted and content_id is given.' }),
    ),
  },
  { $id: 'AttachmentInput', title: 'AttachmentInput' },
);

/** Where a file belongs in its mail: how a reader of the HTML finds what `cid:` names. */
export const mimePlacementFields = {
  content_id: nullableText(1024, { description: 'What <img src="cid:…"> of the HTML names; null without.' }),
  disposition: enumOf(['attachment', 'inline']),
};

const fields = {
  id: id('Attachment id (att_…).'),
  filename: text(1024),
  content_type: text(255),
  size_bytes: Type.Integer({ minimum: 0 }),
  sha256: text(64, { description: 'Of the bytes, in lower-case hexadecimal.' }),
};

export const UploadRecord = strictObject(fields, { $id: 'Upload', title: 'Upload' });

export const AttachmentRecord = strictObject(
  {
    ...fields,
    ...mimePlacementFields,
    download_url: text(8192, { description: 'Works without a credential until expires_at.' }),
    expires_at: timestamp('When download_url stops working; ask again for a new one.'),
  },
  { $id: 'Attachment', title: 'Attachment' },
);

export function presentUpload(attachment: Attachment): Static<typeof UploadRecord> {
  const { id, filename, contentType, sizeBytes, sha256 } = attachment;
  return {
    id,
    filename,
    content_type: contentType,
    size_bytes: sizeBytes,
    sha256: Buffer.from(sha256).toString('hex'),
  };
}

export function presentAttachment(attachment: Attachment, link: FileLink): Static<typeof AttachmentRecord> {
  return {
    ...presentUpload(attachment),
    content_id: attachment.contentId ?? null,
    disposition: attachment.disposition,
    download_url: link.url,
    expires_at: link.expiresAt.toISOString(),
  };
}
