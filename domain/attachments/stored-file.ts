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
