import type { EntityManager } from '@mikro-orm/postgresql';
import type { ObjectRange, Storage } from '../../platform/storage.ts';
import { StorageError } from '../../platform/storage-error.ts';
import type { ArchiveAppender } from './archive-appender.ts';
import { attachmentPath, messagePath } from './archive-names.ts';
import type { ArchivePosition } from './archive-position.ts';
import type { KeysetScan } from './exported-table.ts';
import { DRAFTS, MESSAGES } from './exported-tables.ts';
import { type PagePosition, readNextKeys } from './read-pages.ts';

export type FileFolder = 'messages' | 'attachments';

interface FileSource {
  scan: KeysetScan;
  /** SQL over a page's `(:keys)`; `parent` is the key a file hangs on, in the order of the keys. */
  sql: string;
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

/** Small files are mostly waiting for storage. */
const MAX_CONCURRENT_READS = 16;
/** Of small ones; larger ones are fewer, by their bytes. */
const MAX_FILES_PER_STEP = 128;
/** Of rows looked at for files; most messages have no attachment. */
const OWNERS_PER_PAGE = 200;

const selectAttachments = (column: string) =>
  `select ${column} as "ownerId", position, id, filename, storage_key as "storageKey", size_bytes as "sizeBytes",
     created_at as "createdAt"
   from attachments where ${column} in (:keys) order by ${column}, position, id`;

const SOURCES: Record<FileFolder, FileSource[]> = {
  messages: [
    {
      scan: { ...MESSAGES, pageSize: MAX_FILES_PER_STEP },
      sql: `select id as "ownerId", 0 as position, id, '' as filename, raw_key as "storageKey",
          size_bytes as "sizeBytes", created_at as "createdAt"
        from messages where id in (:keys) and raw_key is not null order by id`,
    },
  ],
  attachments: [
    { scan: { ...MESSAGES, pageSize: OWNERS_PER_PAGE }, sql: selectAttachments('message_id') },
    { scan: { ...DRAFTS, weight: null, pageSize: OWNERS_PER_PAGE }, sql: selectAttachments('draft_id') },
  ],
};

export interface FilePage {
  /** In order; all of what is left of the page. */
  files: FileRow[];
  keys: string[];
  after: PagePosition;
}

/** @returns undefined where the folder has no such source, null at the source's end. */
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
  const marks = page.keys.map(() => '?').join();
  const files =
    page.keys.length === 0 ? [] : await em.execute<FileRow[]>(found.sql.replace(':keys', marks), page.keys);
  return { ...page, files: files.filter((file) => !isAlreadyWritten(file, lastFile)) };
}

/** Whether a file of the row that was left in the middle is written already. */
function isAlreadyWritten(file: FileRow, last: ArchivePosition['lastFile']): boolean {
  if (file.ownerId !== last?.ownerId) return false;
  return file.position < last.position || (file.position === last.position && file.id <= last.id);
}

/**
 * Writes the next files of a page, as many as one step takes. One that is longer than a
 * piece is the last, and stays open.
 */
export async function writeFiles(
  appender: ArchiveAppender,
  folder: FileFolder,
  { files, keys, after }: FilePage,
  storage: Pick<Storage, 'getRange'>,
  pieceBytes: number,
): Promise<void> {
  const turn = files.slice(0, countWithin(files, pieceBytes));
  let written: FileRow | undefined;
  for await (const { file, piece } of readInOrder(turn, storage, pieceBytes)) {
    written = file;
    await writeFile(appender, folder, file, piece);
    if (appender.position.file) break;
  }
  const { position } = appender;
  if (!written || written === files.at(-1)) {
    position.after = after;
    position.lastFile = null;
    return;
  }
  const { ownerId: parent, position: place, id } = written;
  // The page may be the first of another environment.
  const begin = position.after?.parentId === after.parentId ? position.after.key : '';
  const before = keys.filter((key) => key < ownerId).at(-1);
  position.after = { parentId: after.parentId, key: before ?? begin };
  position.lastFile = { ownerId, position: index, id };
}

/** The first pieces of files. Some are asked for ahead; one that was written is not kept. */
async function* readInOrder(
  files: FileRow[],
  storage: Pick<Storage, 'getRange'>,
  pieceBytes: number,
): AsyncGenerator<{ file: FileRow; piece: ObjectRange | null }> {
  const asked: { file: FileRow; piece: Promise<ObjectRange | null> }[] = [];
  const queue = files.values();
  const ask = () => {
    const { value: file } = queue.next();
    if (!file) return;
    const piece = readPiece(storage, file.storageKey, 0, pieceBytes);
    // Whoever waits for it learns of it; after another's failure nobody does.
    piece.catch(() => {});
    asked.push({ file, piece });
  };
  for (let ahead = 0; ahead < MAX_CONCURRENT_READS; ahead += 1) ask();
  for (let next = asked.shift(); next; next = asked.shift()) {
    yield { file: next.file, piece: await next.piece };
    ask();
  }
}

/** How many of the first files are within the limit together; at least one, where there is any. */
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
  piece: ObjectRange | null,
): Promise<void> {
  const name = folder === 'messages' ? messagePath(file.id) : attachmentPath(file.id, file.filename);
  if (!piece) return appender.recordMissing(name, 'gone', file.sizeBytes);
  const modifiedAt = new Date(file.createdAt).getTime();
  appender.count('files', folder, 1);
  if (piece.bytes.length >= piece.totalBytes) return appender.addFile(name, modifiedAt, piece.bytes);
  appender.openFile(name, modifiedAt);
  await appender.addToFile(piece.bytes);
  const { storageKey } = file;
  appender.position.file = { storageKey, offset: piece.bytes.length, totalBytes: piece.totalBytes };
}

/** The next piece of the file that is open. One that storage has lost meanwhile ends where it is. */
export async function continueFile(
  appender: ArchiveAppender,
  storage: Pick<Storage, 'getRange'>,
  pieceBytes: number,
): Promise<void> {
  const { file, entry } = appender.position;
  if (!file || !entry) throw new Error('No file is open');
  const piece = await readPiece(storage, file.storageKey, file.offset, pieceBytes);
  if (piece) await appender.addToFile(piece.bytes);
  else appender.recordMissing(entry.name, 'cut short', file.totalBytes);
  const next = file.offset + (piece?.bytes.length ?? 0);
  const over = !piece || piece.bytes.length === 0 || next >= file.totalBytes;
  if (over) appender.closeFile();
  appender.position.file = over ? null : { ...file, offset: next };
}

/** @returns null where the object is gone. */
async function readPiece(
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
