import type { AttachmentDisposition } from './attachment.entity.ts';

/** What is said of a file, checked at the API's edge. */
export interface FileMetadata {
  /** Safe to save under: no path, no control character. */
  filename: string;
  /** A media type (RFC 2045), possibly with parameters; never `multipart/*`. */
  contentType: string;
  /** Without angle brackets; empty where nothing refers to it. */
  contentId: string | null;
  disposition: AttachmentDisposition;
}

/** A file whose bytes are in storage, and which no row refers to yet. */
export interface StoredFile extends FileMetadata {
  storageKey: string;
  sizeBytes: number;
  sha256: Uint8Array;
}

/** A file a caller wants in a mail: new bytes, or those of an attachment there is, under facts that may differ. */
export type FileToAttach =
  | { kind: 'stored'; file: StoredFile }
  | { kind: 'existing'; attachmentId: string; changes: Partial<FileMetadata> };
