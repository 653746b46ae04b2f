import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Sql } from '../../platform/database/sql.ts';
import type { Storage } from '../../platform/storage.ts';
import { StorageError } from '../../platform/storage-error.ts';
import type { ObjectRange } from '../../platform/storage-range.ts';
import type { ArchiveAppender } from './archive-appender.ts';
import { attachmentPath, messagePath } from './archive-names.ts';
import type { ArchivePosition } from './archive-position.ts';
import type { KeysetScan } from './exported-table.ts';
import { DRAFTS, MESSAGES } from './exported-tables.ts';
import { type PagePosition, readNextKeys } from './read-pages.ts';

export type FileFolder = 'messages' | 'attachments';

interface FileSource {
  scan: KeysetScan;
  /** Selects the files of a page's keys, in their order; `ownerId` is the key the file belongs to. */
  select(keys: string[]): Sql;
}

interface FileRow {
  ownerId: string;
  position: number;
  id: string;
  filename: string;
  storageKey: string;
  sizeBytes: number;
  createdAt: Date | string;
}

/** Small files are read concurrently, because most of the time is spent waiting for storage. */
const MAX_CONCURRENT_READS = 16;
/** Limit for small files; `maxChunkBytes` limits larger ones. */
const MAX_FILES_PER_STEP = 128;
/** Rows checked for attachments per query; most messages have none. */
const OWNERS_PER_PAGE = 200;

const selectAttachments = (column: Sql, keys: string[]) =>
  sql`select ${column} as "ownerId", position, id, filename, storage_key as "storageKey", size_bytes as "sizeBytes",
     created_at as "createdAt"
   from attachments where ${column} in (${keys}) order by ${column}, position, id`;

const SOURCES: Record<FileFolder, FileSource[]> = {
  messages: [
    {
      scan: { ...MESSAGES, pageSize: MAX_FILES_PER_STEP },
      select: (
        keys,
      ) => sql`select id as "ownerId", 0 as position, id, '' as filename, raw_key as "storageKey",
          size_bytes as "sizeBytes", created_at as "createdAt"
        from messages where id in (${keys}) and raw_key is not null order by id`,
    },
  ],
  attachments: [
    {
      scan: { ...MESSAGES, pageSize: OWNERS_PER_PAGE },
      select: (keys) => selectAttachments(sql`message_id`, keys),
    },
    {
      scan: { ...DRAFTS, weight: null, pageSize: OWNERS_PER_PAGE },
      select: (keys) => selectAttachments(sql`draft_id`, keys),
    },
  ],
};

export interface FilePage {
  /** The remaining files of the page, in order. */
  files: FileRow[];
  keys: string[];
  after: PagePosition;
}

/** @returns undefined if the folder has no such source, null at the end of the source. */
export async function readNextFiles(
  em: EntityManager,
  folder: FileFolder,
  { source, after, lastFile }: ArchivePosition,
  startedAt: Date,
): Promise<FilePage | null | undefined> {
  const found = SOURCES[folder][source];
  if (!found) return undefined;
  const page = await readNextKeys(em, found.scan, after, startedAt);
  if (!page) return null;
  const files = page.keys.length === 0 ? [] : await em.execute<FileRow[]>(found.select(page.keys));
  return { ...page, files: files.filter((file) => !isAlreadyWritten(file, lastFile)) };
}

/** Whether an earlier step has written the file, for an owner whose files are partly written. */
function isAlreadyWritten(file: FileRow, last: ArchivePosition['lastFile']): boolean {
  if (file.ownerId !== last?.ownerId) return false;
  return file.position < last.position || (file.position === last.position && file.id <= last.id);
}

/**
 * Writes the next files of a page, as many as fit into one step. A file longer than a chunk ends the step and stays
 * open.
 */
export async function writeFiles(
  appender: ArchiveAppender,
  folder: FileFolder,
  { files, keys, after }: FilePage,
  storage: Pick<Storage, 'getRange'>,
  maxChunkBytes: number,
): Promise<void> {
  const batch = files.slice(0, countWithin(files, maxChunkBytes));
  let written: FileRow | undefined;
  for await (const { file, chunk } of readInOrder(batch, storage, maxChunkBytes)) {
    written = file;
    await writeFile(appender, folder, file, chunk);
    if (appender.position.file) break;
  }
  const { position } = appender;
  if (!written || written === files.at(-1)) {
    position.after = after;
    position.lastFile = null;
    return;
  }
  const { ownerId, position: index, id } = written;
  // The page may be the first one of another environment.
  const startKey = position.after?.parentId === after.parentId ? position.after.key : '';
  const previousKey = keys.filter((key) => key < ownerId).at(-1);
  position.after = { parentId: after.parentId, key: previousKey ?? startKey };
  position.lastFile = { ownerId, position: index, id };
}

/** Yields the first chunk of each file, reading some files ahead. */
async function* readInOrder(
  files: FileRow[],
  storage: Pick<Storage, 'getRange'>,
  maxChunkBytes: number,
): AsyncGenerator<{ file: FileRow; chunk: ObjectRange | null }> {
  const requested: { file: FileRow; chunk: Promise<ObjectRange | null> }[] = [];
  const queue = files.values();
  const requestNext = () => {
    const { value: file } = queue.next();
    if (!file) return;
    const chunk = readChunk(storage, file.storageKey, 0, maxChunkBytes);
    // The consumer awaits it, except after an earlier failure. The rejection would then be unhandled.
    chunk.catch(() => {});
    requested.push({ file, chunk });
  };
  for (let ahead = 0; ahead < MAX_CONCURRENT_READS; ahead += 1) requestNext();
  for (let next = requested.shift(); next; next = requested.shift()) {
    yield { file: next.file, chunk: await next.chunk };
    requestNext();
  }
}

/** Returns how many of the first files fit within the limit, at least one. */
function countWithin(files: FileRow[], limitBytes: number): number {
  let sum = 0;
  const end = files.findIndex(({ sizeBytes }, index) => {
    sum += sizeBytes;
    return index === MAX_FILES_PER_STEP || (index > 0 && sum > limitBytes);
  });
  return end === -1 ? files.length : end;
}

async function writeFile(
  appender: ArchiveAppender,
  folder: FileFolder,
  file: FileRow,
  chunk: ObjectRange | null,
): Promise<void> {
  const name = folder === 'messages' ? messagePath(file.id) : attachmentPath(file.id, file.filename);
  if (!chunk) return appender.recordMissing(name, 'gone', file.sizeBytes);
  const modifiedAt = new Date(file.createdAt).getTime();
  appender.count('files', folder, 1);
  if (chunk.bytes.length >= chunk.totalBytes) return appender.addFile(name, modifiedAt, chunk.bytes);
  appender.startFile(name, modifiedAt);
  await appender.addToFile(chunk.bytes);
  const { storageKey } = file;
  appender.position.file = { storageKey, offset: chunk.bytes.length, totalBytes: chunk.totalBytes };
}

/** Writes the next chunk of the open file. If storage has lost the file meanwhile, it is closed incomplete. */
export async function continueFile(
  appender: ArchiveAppender,
  storage: Pick<Storage, 'getRange'>,
  maxChunkBytes: number,
): Promise<void> {
  const { file, entry } = appender.position;
  if (!file || !entry) throw new Error('No file is open');
  const chunk = await readChunk(storage, file.storageKey, file.offset, maxChunkBytes);
  if (chunk) await appender.addToFile(chunk.bytes);
  else appender.recordMissing(entry.name, 'cut short', file.totalBytes);
  const next = file.offset + (chunk?.bytes.length ?? 0);
  const isComplete = !chunk || chunk.bytes.length === 0 || next >= file.totalBytes;
  if (isComplete) appender.closeFile();
  appender.position.file = isComplete ? null : { ...file, offset: next };
}

/** @returns null if the object no longer exists. */
async function readChunk(
  storage: Pick<Storage, 'getRange'>,
  storageKey: string,
  start: number,
  maxBytes: number,
): Promise<ObjectRange | null> {
  try {
    return await storage.getRange(storageKey, start, maxBytes);
  } catch (error) {
    if (error instanceof StorageError && error.failure === 'missing') return null;
    throw error;
  }
}
