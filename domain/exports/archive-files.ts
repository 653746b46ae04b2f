import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Storage } from '../../platform/storage.ts';
import { StorageError } from '../../platform/storage-error.ts';
import type { ObjectRange } from '../../platform/storage-range.ts';
import type { ZipFile } from '../../platform/zip.ts';
import type { ArchiveCounts, FileFolder } from './archive-counts.ts';
import { attachmentPath, messagePath } from './archive-names.ts';
import type { KeysetScan } from './exported-table.ts';
import { DRAFTS, MESSAGES } from './exported-tables.ts';
import { type PagePosition, readNextKeys } from './read-pages.ts';

interface FileRow {
  /** Path in the archive. */
  name: string;
  storageKey: string;
  sizeBytes: number;
  createdAt: Date;
}

interface FileSource {
  scan: KeysetScan;
  /** Selects the files of a page's keys, in their order. */
  select(db: Db, keys: string[]): Promise<FileRow[]>;
}

export interface FileReaderOptions {
  database: Pick<Database, 'readAsTenant'>;
  storage: Pick<Storage, 'getRange'>;
  organizationId: string;
  startedAt: Date;
  /** Maximum number of bytes of a file in memory at once. */
  maxChunkBytes: number;
  counts: ArchiveCounts;
}

/** Files are read ahead, because most of the time is spent waiting for storage. */
const MAX_CONCURRENT_READS = 16;
const MAX_BYTES_AHEAD = 4 * 1024 * 1024;
const FILES_PER_PAGE = 128;
/** Rows checked for attachments per query; most messages have none. */
const OWNERS_PER_PAGE = 200;

async function selectMessages(db: Db, ids: string[]): Promise<FileRow[]> {
  const rows = await db
    .selectFrom('messages')
    .select(['id', 'raw_key as storageKey', 'size_bytes as sizeBytes', 'created_at as createdAt'])
    .where('id', '=', anyOf(ids))
    .where('raw_key', 'is not', null)
    .$narrowType<{ storageKey: string }>()
    .orderBy('id')
    .execute();
  return rows.map(({ id, ...row }) => ({ ...row, name: messagePath(id) }));
}

const selectAttachmentsOf =
  (owner: 'message_id' | 'draft_id') =>
  async (db: Db, ids: string[]): Promise<FileRow[]> => {
    const rows = await db
      .selectFrom('attachments')
      .select([
        'id',
        'filename',
        'storage_key as storageKey',
        'size_bytes as sizeBytes',
        'created_at as createdAt',
      ])
      .where(owner, '=', anyOf(ids))
      .orderBy(owner)
      .orderBy('position')
      .orderBy('id')
      .execute();
    return rows.map(({ id, filename, ...row }) => ({ ...row, name: attachmentPath(id, filename) }));
  };

const SOURCES: Record<FileFolder, FileSource[]> = {
  messages: [{ scan: { ...MESSAGES, pageSize: FILES_PER_PAGE }, select: selectMessages }],
  attachments: [
    { scan: { ...MESSAGES, pageSize: OWNERS_PER_PAGE }, select: selectAttachmentsOf('message_id') },
    {
      scan: { ...DRAFTS, weight: null, pageSize: OWNERS_PER_PAGE },
      select: selectAttachmentsOf('draft_id'),
    },
  ],
};

/** Yields the files of a folder. Files that storage no longer has are listed as missing instead. */
export async function* readFiles(options: FileReaderOptions, folder: FileFolder): AsyncGenerator<ZipFile> {
  const { counts } = options;
  for await (const { file, chunk } of readAhead(options, listFiles(options, folder))) {
    const { name, createdAt: modifiedAt, sizeBytes } = file;
    if (!chunk) {
      counts.addMissing(name, 'gone', sizeBytes);
      continue;
    }
    counts.files[folder] += 1;
    const isWhole = chunk.bytes.length >= chunk.totalBytes;
    yield { name, modifiedAt, data: isWhole ? chunk.bytes : readRest(options, file, chunk) };
  }
}

async function* listFiles(
  { database, organizationId, startedAt }: FileReaderOptions,
  folder: FileFolder,
): AsyncGenerator<FileRow> {
  for (const { scan, select } of SOURCES[folder]) {
    const readPage = (after: PagePosition | null) =>
      database.readAsTenant(organizationId, async (db) => {
        const page = await readNextKeys(db, scan, after, startedAt);
        return page && { after: page.after, files: page.keys.length > 0 ? await select(db, page.keys) : [] };
      });
    for (let page = await readPage(null); page; page = await readPage(page.after)) yield* page.files;
  }
}

interface FileStart {
  file: FileRow;
  /** Null if the object no longer exists. */
  chunk: ObjectRange | null;
}

/** Yields the first chunk of each file in order, while those of the following files are being read. */
async function* readAhead(
  options: FileReaderOptions,
  files: AsyncIterable<FileRow>,
): AsyncGenerator<FileStart> {
  const requested: { file: FileRow; bytes: number; chunk: Promise<ObjectRange | null> }[] = [];
  let bytesAhead = 0;
  const takeFirst = async (): Promise<FileStart> => {
    const { file, bytes, chunk } = requested.shift() as (typeof requested)[number];
    bytesAhead -= bytes;
    return { file, chunk: await chunk };
  };
  for await (const file of files) {
    const chunk = readChunk(options, file.storageKey, 0);
    // The chunk is awaited unless an earlier one failed, in which case a rejection would be unhandled.
    chunk.catch(() => {});
    const bytes = Math.min(file.sizeBytes, options.maxChunkBytes);
    requested.push({ file, bytes, chunk });
    bytesAhead += bytes;
    while (requested.length >= MAX_CONCURRENT_READS || bytesAhead > MAX_BYTES_AHEAD) yield await takeFirst();
  }
  while (requested.length > 0) yield await takeFirst();
}

/**
 * Reads a file that is too large to read at once. If storage loses the file during this, its beginning stays in the
 * archive.
 */
async function* readRest(
  options: FileReaderOptions,
  file: FileRow,
  first: ObjectRange,
): AsyncGenerator<Buffer> {
  let chunk: ObjectRange | null = first;
  for (let offset = 0; chunk && chunk.bytes.length > 0; ) {
    offset += chunk.bytes.length;
    const next: Promise<ObjectRange | null> | undefined =
      offset < chunk.totalBytes ? readChunk(options, file.storageKey, offset) : undefined;
    next?.catch(() => {});
    yield chunk.bytes;
    if (!next) return;
    chunk = await next;
  }
  if (!chunk) options.counts.addMissing(file.name, 'cut short', first.totalBytes);
}

/** @returns null if the object no longer exists. */
async function readChunk(
  { storage, maxChunkBytes }: FileReaderOptions,
  storageKey: string,
  start: number,
): Promise<ObjectRange | null> {
  try {
    return await storage.getRange(storageKey, start, maxChunkBytes);
  } catch (error) {
    if (error instanceof StorageError && error.failure === 'missing') return null;
    throw error;
  }
}
