import type { ZipEntry } from '../../platform/zip.ts';

/** A file too large to be read at once, of which some is written. */
export interface OpenFile {
  storageKey: string;
  /** Of the next byte to be read. */
  next: number;
  totalBytes: number;
}

/** How far the writing of an archive came: all that the next step needs to know, as JSON. */
export interface ArchivePosition {
  /** What the writer calls the plan it began with; another one's stages are others. */
  plan: string;
  /** Index into the plan. */
  stage: number;
  /** Index into the sources of the stage. */
  source: number;
  /** The last row written of the source; empty at its beginning. */
  after: { outer: string; key: string } | null;
  entry: ZipEntry | null;
  file: OpenFile | null;
  /** The last file written of a row that has several; empty where all of the rows before are done. */
  lastFile: { parent: string; position: number; id: string } | null;
  /** Some file in it may grow beyond 4 GiB. */
  large: boolean;
  /** Bytes of the archive so far. */
  offset: number;
  /** Where the central directory begins; 0 before it does. */
  directoryOffset: number;
  entries: number;
  /** The last piece whose directory, or missing files, were written. */
  piece: number;
  /** Written, by the name of the table's file and of the folder. */
  rows: Record<string, number>;
  files: Record<string, number>;
  missing: number;
}

export const BEGINNING: Omit<ArchivePosition, 'plan' | 'large'> = {
  stage: 0,
  source: 0,
  after: null,
  entry: null,
  file: null,
  lastFile: null,
  offset: 0,
  directoryOffset: 0,
  entries: 0,
  piece: 0,
  rows: {},
  files: {},
  missing: 0,
};
