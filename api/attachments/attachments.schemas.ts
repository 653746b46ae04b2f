import { type Static, Type } from 'typebox';
import type { Attachment } from '../../domain/attachments/attachment.entity.ts';
import type { FileLink } from '../../domain/attachments/attachment.service.ts';
import { enumOf, id, nullableText, resource, strictObject, text, timestamp } from '../schemas.ts';

/** The same as the body limit of the route. */
const MAX_BASE64_CHARACTERS = 8 * 1024 * 1024;
const NO_CONTROLS = '^[^\\u0000-\\u001f\\u007f]*$';

/** A file to attach: its bytes, or an existing attachment. */
export const AttachmentInput = strictObject(
  {
    filename: Type.Optional(
      text(255, {
        minLength: 1,
        pattern: NO_CONTROLS,
        description: 'Required with content. A path is reduced to its file name.',
      }),
    ),
    content_type: Type.Optional(
      text(255, {
        description: 'Media type (RFC 2045), not multipart/*. Default: application/octet-stream.',
      }),
    ),
    content: Type.Optional(
      text(MAX_BASE64_CHARACTERS, {
        description:
          'The bytes in base64 (RFC 4648 section 4, with padding, without line ends), at most 5 MiB decoded.',
      }),
    ),
    attachment_id: Type.Optional(
      id('Instead of content: an upload, or an attachment of any accessible message or draft (att_…).'),
    ),
    content_id: Type.Optional(
      nullableText(255, {
        minLength: 1,
        pattern: '^[!-;=?-~]+$',
        description: 'Content-ID for <img src="cid:…"> in the HTML; without angle brackets.',
      }),
    ),
    disposition: Type.Optional(
      enumOf(['attachment', 'inline'], {
        description: 'Default: inline with content_id, otherwise attachment.',
      }),
    ),
  },
  { $id: 'AttachmentInput', title: 'AttachmentInput' },
);

/** How the HTML of the message refers to the file by `cid:`. */
export const mimePlacementFields = {
  content_id: nullableText(1024, {
    description: 'The Content-ID that <img src="cid:…"> in the HTML refers to; null if there is none.',
  }),
  disposition: enumOf(['attachment', 'inline']),
};

const fields = {
  id: id('Attachment id (att_…).'),
  filename: text(1024),
  content_type: text(255),
  size_bytes: Type.Integer({ minimum: 0 }),
  sha256: text(64, { description: 'SHA-256 of the bytes in lower-case hexadecimal.' }),
};

export const UploadRecord = resource('attachment', fields, { $id: 'Upload', title: 'Upload' });

export const AttachmentRecord = resource(
  'attachment',
  {
    ...fields,
    ...mimePlacementFields,
    download_url: text(8192, { description: 'Works without a credential until expires_at.' }),
    expires_at: timestamp('When download_url expires; request a new one.'),
  },
  { $id: 'Attachment', title: 'Attachment' },
);

export function presentUpload(attachment: Attachment): Static<typeof UploadRecord> {
  const { id, filename, contentType, sizeBytes, sha256 } = attachment;
  return {
    object: 'attachment',
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
