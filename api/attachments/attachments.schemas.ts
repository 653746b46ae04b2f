import { type Static, Type } from 'typebox';
import type { Attachment } from '../../domain/attachments/attachment.entity.ts';
import type { FileLink } from '../../domain/attachments/attachment.service.ts';
import type { AttachmentText } from '../../domain/attachments/attachment-text.service.ts';
import { FILE_FORMATS } from '../../domain/attachments/text/detect-format.ts';
import { MAX_TEXT_CHARACTERS } from '../../domain/attachments/text/text-collector.ts';
import { cutText, DEFAULT_CHARACTERS } from '../../domain/messages/agent-text.ts';
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

export const AttachmentTextQuery = strictObject({
  max_chars: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 500_000,
      description: `Cuts the text. Default: ${DEFAULT_CHARACTERS.toLocaleString('en')}.`,
    }),
  ),
  offset: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 10_000_000,
      description: 'Where the text starts; next_offset of the part before.',
    }),
  ),
});

export const AttachmentTextRecord = resource(
  'attachment_text',
  {
    attachment_id: id('Attachment id (att_…).'),
    filename: text(1024),
    content_type: text(255, { description: 'What the message says about the file.' }),
    format: enumOf(FILE_FORMATS, { description: 'What the file is, by its bytes.' }),
    text: text(MAX_TEXT_CHARACTERS, {
      description:
        'What the file says, without hidden text. Slides and sheets have titles, cells are separated by tabs.',
    }),
    truncated: Type.Boolean({ description: 'More text follows, from next_offset.' }),
    total_chars: Type.Integer({ minimum: 0, description: 'Of the whole text, in UTF-16 code units.' }),
    offset: Type.Integer({ minimum: 0 }),
    next_offset: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description: 'The offset of the rest of the text; null if nothing follows.',
    }),
    left_out: Type.Array(text(2_000), {
      maxItems: 30,
      description: 'What the text lacks, as sentences: images, hidden sheets, pages without text.',
    }),
  },
  { $id: 'AttachmentText', title: 'AttachmentText' },
);

export function presentText(
  { attachment, format, text: whole, leftOut }: AttachmentText,
  { offset = 0, max_chars = DEFAULT_CHARACTERS }: Static<typeof AttachmentTextQuery>,
): Static<typeof AttachmentTextRecord> {
  const part = cutText(whole, { offset, maxCharacters: max_chars });
  return {
    object: 'attachment_text',
    attachment_id: attachment.id,
    filename: attachment.filename,
    content_type: attachment.contentType,
    format,
    text: part.text,
    truncated: part.isTruncated,
    total_chars: whole.length,
    offset,
    next_offset: part.nextOffset,
    left_out: leftOut,
  };
}
