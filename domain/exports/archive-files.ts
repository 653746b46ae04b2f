import type { EntityManager } from '@mikro-orm/postgresql';
import type { ObjectPiece, Storage } from '../../platform/storage.ts';
import { StorageError } from '../../platform/storage-error.ts';
import type { ArchiveAppender } from './archive-appender.ts';
import { attachmentFile, messageFile } from './archive-names.ts';
import type { ArchivePosition } from './archive-position.ts';
import type { Walk } from './exported-table.ts';
import { DRAFTS, MESSAGES } from './exported-tables.ts';
import { nextKeys, type PagePosition } from './read-pages.ts';

export type FileFolder = 'messages' | 'attachments';

interface FileSource {
  walk: Walk;
  /** SQL over a page's `(:keys)`; `parent` is the key a file hangs on, in the order of the keys. */
  sql: string;
}

interface FileRow {
  parent: string;
  position: number;
  id: string;
  filename: string;
  storageKey: string;
  sizeBytes: number;
  createdAt: Date | string;
}

/** Small files are mostly waiting for storage. */
const FILES_AT_ONCE = 16;
/** Of small ones; larger ones are fewer, by their bytes. */
const FILES_A_STEP = 128;
/** Of rows looked at for files; most messages have no attachment. */
const PARENTS_AT_ONCE = 200;

const attachmentsOf = (column: string) =>
  `select ${column} as parent, position, id, filename, storage_key as "storageKey", size_bytes as "sizeBytes",
     created_at as "createdAt"
   from attachments where ${column} in (:keys) order by ${column}, position, id`;

const SOURCES: Record<FileFolder, FileSource[]> = {
  messages: [
    {
      walk: { ...MESSAGES, pageSize: FILES_A_STEP },
      sql: `select id as parent, 0 as position, id, '' as filename, raw_key as "storageKey",
          size_bytes as "sizeBytes", created_at as "createdAt"
        from messages where id in (:keys) and raw_key is not null order by id`,
    },
  ],
  attachments: [
    { walk: { ...MESSAGES, pageSize: PARENTS_AT_ONCE }, sql: attachmentsOf('message_id') },
    { walk: { ...DRAFTS, weight: null, pageSize: PARENTS_AT_ONCE }, sql: attachmentsOf('draft_id') },
  ],
};

export interface FilePage {
  /** In order; all of what is left of the page. */
  files: FileRow[];
  keys: string[];
  after: PagePosition;
}

/** @returns undefined where the folder has no such source, null at the source's end. */
export async function nextFiles(
  em: EntityManager,
  folder: FileFolder,
  { source, after, lastFile }: ArchivePosition,
  startedAt: Date,
): Promise<FilePage | null | undefined> {
  const found = SOURCES[folder][source];
  if (!found) return undefined;
  const page = await nextKeys(em, found.walk, after, startedAt);
  if (!page) return null;
  const marks = page.keys.map(() => '?').join();
  const files =
    page.keys.length === 0 ? [] : await em.execute<FileRow[]>(found.sql.replace(':keys', marks), page.keys);
  return { ...page, files: files.filter((file) => !isBehind(file, lastFile)) };
}

/** Whether a file of the row that was left in the middle is written already. */
function isBehind(file: FileRow, last: ArchivePosition['lastFile']): boolean {
  if (file.parent !== last?.parent) return false;
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
  storage: Pick<Storage, 'getPiece'>,
  pieceBytes: number,
): Promise<void> {
  const turn = files.slice(0, countWithin(files, pieceBytes));
  let written: FileRow | undefined;
  for await (const { file, piece } of inOrder(turn, storage, pieceBytes)) {
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
  const { parent, position: place, id } = written;
  // The page may be the first of another environment.
  const begin = position.after?.outer === after.outer ? position.after.key : '';
  const before = keys.filter((key) => key < parent).at(-1);
  position.after = { outer: after.outer, key: before ?? begin };
  position.lastFile = { parent, position: place, id };
}

/** The first pieces of files. Some are asked for ahead; one that was written is not kept. */
async function* inOrder(
  files: FileRow[],
  storage: Pick<Storage, 'getPiece'>,
  pieceBytes: number,
): AsyncGenerator<{ file: FileRow; piece: ObjectPiece | null }> {
  const asked: { file: FileRow; piece: Promise<ObjectPiece | null> }[] = [];
  const queue = files.values();
  const ask = () => {
    const { value: file } = queue.next();
    if (!file) return;
    const piece = pieceOf(storage, file.storageKey, 0, pieceBytes);
    // Whoever waits for it learns of it; after another's failure nobody does.
    piece.catch(() => {});
    asked.push({ file, piece });
  };
  for (let ahead = 0; ahead < FILES_AT_ONCE; ahead += 1) ask();
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
    return index === FILES_A_STEP || (index > 0 && sum > limitBytes);
  });
  return end === -1 ? files.length : end;
}

async function writeFile(
  appender: ArchiveAppender,
  folder: FileFolder,
  file: FileRow,
  piece: ObjectPiece | null,
): Promise<void> {
  const name = folder === 'messages' ? messageFile(file.id) : attachmentFile(file.id, file.filename);
  if (!piece) return appender.miss(name, 'gone', file.sizeBytes);
  const modifiedAt = new Date(file.createdAt).getTime();
  appender.count('files', folder, 1);
  if (piece.bytes.length >= piece.totalBytes) return appender.addFile(name, modifiedAt, piece.bytes);
  appender.openFile(name, modifiedAt);
  await appender.addToFile(piece.bytes);
  const { storageKey } = file;
  appender.position.file = { storageKey, next: piece.bytes.length, totalBytes: piece.totalBytes };
}

/** The next piece of the file that is open. One that storage has lost meanwhile ends where it is. */
export async function continueFile(
  appender: ArchiveAppender,
  storage: Pick<Storage, 'getPiece'>,
  pieceBytes: number,
): Promise<void> {
  const { file, entry } = appender.position;
  if (!file || !entry) throw new Error('No file is open');
  const piece = await pieceOf(storage, file.storageKey, file.next, pieceBytes);
  if (piece) await appender.addToFile(piece.bytes);
  else appender.miss(entry.name, 'cut short', file.totalBytes);
  const next = file.next + (piece?.bytes.length ?? 0);
  const over = !piece || piece.bytes.length === 0 || next >= file.totalBytes;
  if (over) appender.closeFile();
  appender.position.file = over ? null : { ...file, next };
}

/** @returns null where the object is gone. */
async function pieceOf(
  storage: Pick<Storage, 'getPiece'>,
  storageKey: string,
  start: number,
  maxBytes: number,
): Promise<ObjectPiece | null> {
  try {
    return await storage.getPiece(storageKey, start, maxBytes);
  } catch (error) {
    if (error instanceof StorageError && error.failure === 'missing') return null;
    throw error;
  }
}
