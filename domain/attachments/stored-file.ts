import type { AttachmentDisposition } from './attachment.entity.ts';

/** The metadata of a file, validated by the API. */
export interface FileMetadata {
  /** Safe as a file name: no path, no control characters. */
  filename: string;
  /** A media type (RFC 2045), possibly with parameters; never `multipart/*`. */
  contentType: string;
  /** Without angle brackets; null if nothing refers to it. */
  contentId: string | null;
  disposition: AttachmentDisposition;
}

/** A file whose bytes are in storage and to which no row refers yet. */
export interface StoredFile extends FileMetadata {
  storageKey: string;
  sizeBytes: number;
  sha256: Uint8Array;
}

/** A file to attach: new bytes, or an existing attachment with optional changes to its metadata. */
export type FileToAttach =
  | { kind: 'stored'; file: StoredFile }
  | { kind: 'existing'; attachmentId: string; changes: Partial<FileMetadata> };

/** RFC 2045 section 5.1: any ASCII except space, control characters and tspecials. */
const TOKEN = "[!#$%&'*+.^_`{|}~0-9A-Za-z-]+";
const QUOTED = '"(?:[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]|\\\\[\\x20-\\x7e])*"';
/** Names as restricted by RFC 6838 section 4.2, which S3 and mail clients accept. */
const NAME = '[0-9A-Za-z][!#$&^_.+0-9A-Za-z-]{0,126}';
const MEDIA_TYPE = new RegExp(`^${NAME}/${NAME}(?: ?; ?${TOKEN}=(?:${TOKEN}|${QUOTED}))*$`);
const MAX_CHARACTERS = 255;

/** Returns why a text is not the media type of a file, for an error message; undefined if it is one. */
export function findMediaTypeError(value: string): string | undefined {
  if (value.length > MAX_CHARACTERS) return `must not be longer than ${MAX_CHARACTERS} characters`;
  if (!MEDIA_TYPE.test(value)) return 'must be a media type (type/subtype), such as application/pdf';
  if (/^multipart\//i.test(value)) return 'must not be multipart: an attachment is one file';
  return undefined;
}
