import type { ZipEntry } from '../../platform/zip.ts';

/** A partly written file that is too large to read at once. */
export interface OpenFile {
  storageKey: string;
  /** Offset of the next byte to read. */
  offset: number;
  totalBytes: number;
}

/** Progress of an archive: everything the next step needs, serializable as JSON. */
export interface ArchivePosition {
  /** Hash of the plan the archive was started with. Other plans have other stages. */
  plan: string;
  /** Index into the plan. */
  stage: number;
  /** Index into the sources of the stage. */
  source: number;
  /** The last row written of the source; null at its beginning. */
  after: { parentId: string; key: string } | null;
  entry: ZipEntry | null;
  file: OpenFile | null;
  /** The last file written of a row whose files are not all written; null otherwise. */
  lastFile: { ownerId: string; position: number; id: string } | null;
  /** Whether a file in the archive may exceed 4 GiB. */
  zip64: boolean;
  /** Archive size so far, in bytes. */
  offset: number;
  /** Offset of the central directory; 0 until it is written. */
  directoryOffset: number;
  entries: number;
  /** The last segment whose directory records, or missing files, were written. */
  segment: number;
  /** Rows written, by table, and files written, by folder. */
  rows: Record<string, number>;
  files: Record<string, number>;
  missingFiles: number;
}

export const INITIAL_POSITION: Omit<ArchivePosition, 'plan' | 'zip64'> = {
  stage: 0,
  source: 0,
  after: null,
  entry: null,
  file: null,
  lastFile: null,
  offset: 0,
  directoryOffset: 0,
  entries: 0,
  segment: 0,
  rows: {},
  files: {},
  missingFiles: 0,
};
