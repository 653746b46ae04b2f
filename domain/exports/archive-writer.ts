import { createHash } from 'node:crypto';
import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import type { Storage } from '../../platform/storage.ts';
import { buildEndRecords } from '../../platform/zip.ts';
import { ArchiveAppender, type ArchiveStep } from './archive-appender.ts';
import { continueFile, type FileFolder, readNextFiles, writeFiles } from './archive-files.ts';
import { attachmentPath } from './archive-names.ts';
import { type ArchivePosition, INITIAL_POSITION } from './archive-position.ts';
import { EXPORT_FORMAT, EXPORT_FORMAT_VERSION, README } from './archive-readme.ts';
import type { Export } from './export.entity.ts';
import { type ExportedTable, fileNameOf } from './exported-table.ts';
import { EXPORTED_TABLES } from './exported-tables.ts';
import { readNextLines } from './read-pages.ts';

export interface ArchiveSource extends Pick<Export, 'id' | 'organizationId' | 'requestedBy'> {
  startedAt: Date;
  files: Pick<Storage, 'getRange'>;
}

export interface ArchiveWriter {
  /** Returns the position of a new archive. @param zip64 whether a file in it may exceed 4 GiB. */
  initialPosition(zip64: boolean): ArchivePosition;
  /** Whether this release can continue the archive; another release may export other tables. */
  isCompatible(position: ArchivePosition): boolean;
  /**
   * Returns the next bytes of an archive: a page of rows, some files, or a chunk of a large file. Depends only on the
   * position, so any process can run any step; a repeated step reads the current data.
   *
   * @throws StorageError `unavailable`. A missing object is recorded in `missing_files.jsonl` instead.
   */
  writeStep(archive: ArchiveSource, position: ArchivePosition): Promise<ArchiveStep>;
  /** Whether the next step reads back checkpointed data, so that a checkpoint has to be saved first. */
  readsCheckpoints(position: ArchivePosition): boolean;
  isComplete(position: ArchivePosition): boolean;
}

export interface ArchiveWriterOptions {
  database: Pick<Database, 'readAsTenant' | 'query' | 'orm'>;
  /** How much of a file is in memory at once. */
  maxChunkBytes?: number;
}

type Stage =
  | { kind: 'readme' | 'missing' | 'manifest' | 'directory' | 'end' }
  | { kind: 'files'; folder: FileFolder }
  | { kind: 'table'; table: ExportedTable };

/** Files come before rows: the file of every row has then been written or recorded as missing. */
const PLAN: Stage[] = [
  { kind: 'readme' },
  { kind: 'files', folder: 'messages' },
  { kind: 'files', folder: 'attachments' },
  ...EXPORTED_TABLES.map((table) => ({ kind: 'table' as const, table })),
  { kind: 'missing' },
  { kind: 'manifest' },
  { kind: 'directory' },
  { kind: 'end' },
];

const PLAN_HASH = createHash('sha256').update(JSON.stringify(PLAN)).digest('base64url');

/** Much smaller than a part, since bytes that fill no part yet are saved in the export's row. */
const CHUNK_BYTES = 1024 * 1024;

export function createArchiveWriter(options: ArchiveWriterOptions): ArchiveWriter {
  const { database, maxChunkBytes = CHUNK_BYTES } = options;
  const getColumnType = readColumnTypes(database);
  const getStageKind = ({ stage }: ArchivePosition) => PLAN[stage]?.kind;

  async function writeStage(stage: Stage, archive: ArchiveSource, appender: ArchiveAppender): Promise<void> {
    switch (stage.kind) {
      case 'readme':
        await appender.addFile('README.txt', archive.startedAt.getTime(), Buffer.from(README));
        return appender.nextStage();
      case 'files':
        return writeFileStep(stage.folder, archive, appender);
      case 'table':
        return writeRowStep(stage.table, archive, appender);
      case 'missing':
        return writeMissingFiles(archive, appender);
      case 'manifest':
        return writeManifest(archive, appender);
      case 'directory':
        return writeDirectory(archive, appender);
      case 'end':
        return writeEnd(appender);
    }
  }

  async function writeFileStep(folder: FileFolder, archive: ArchiveSource, appender: ArchiveAppender) {
    const { position } = appender;
    if (position.file) return continueFile(appender, archive.files, maxChunkBytes);
    const page = await database.readAsTenant(archive.organizationId, (em) =>
      readNextFiles(em, folder, position, archive.startedAt),
    );
    if (page === undefined) appender.nextStage();
    else if (page === null) appender.nextSource();
    else await writeFiles(appender, folder, page, archive.files, maxChunkBytes);
  }

  async function writeRowStep(table: ExportedTable, archive: ArchiveSource, appender: ArchiveAppender) {
    const { position } = appender;
    appender.startFile(`data/${fileNameOf(table)}.jsonl`, archive.startedAt.getTime());
    const source = table.sources[position.source];
    if (!source) return closeTable(appender);
    const page = await database.readAsTenant(archive.organizationId, (em) =>
      readNextLines(em, {
        table,
        source,
        after: position.after,
        startedAt: archive.startedAt,
        typeOf: (column) => getColumnType(table.table, column),
      }),
    );
    if (!page) {
      appender.nextSource();
      return position.source < table.sources.length ? undefined : closeTable(appender);
    }
    const lines = table.table === 'attachments' ? page.lines.map(addFilePath) : page.lines;
    if (lines.length > 0) await appender.addToFile(Buffer.from(`${lines.join('\n')}\n`));
    appender.count('rows', fileNameOf(table), lines.length);
    position.after = page.after;
  }

  async function writeMissingFiles(archive: ArchiveSource, appender: ArchiveAppender) {
    appender.startFile('data/missing_files.jsonl', archive.startedAt.getTime());
    const [segment] = await database.query<{ number: number; missing: string }>(
      sql`select number, missing_files as missing from export_segments
       where export_id = ${archive.id} and number > ${appender.position.segment} and missing_files <> ''
       order by number limit 1`,
    );
    if (segment) {
      await appender.addToFile(Buffer.from(segment.missing));
      appender.position.segment = segment.number;
      return;
    }
    appender.closeFile();
    appender.nextStage();
  }

  async function writeManifest(archive: ArchiveSource, appender: ArchiveAppender) {
    const { rows, files, missingFiles } = appender.position;
    const manifest = {
      format: EXPORT_FORMAT,
      version: EXPORT_FORMAT_VERSION,
      export_id: archive.id,
      organization_id: archive.organizationId,
      requested_by: archive.requestedBy,
      started_at: archive.startedAt.toISOString(),
      completed_at: new Date().toISOString(),
      tables: EXPORTED_TABLES.map(fileNameOf).map((name) => ({
        name,
        file: `data/${name}.jsonl`,
        rows: rows[name] ?? 0,
      })),
      files: { messages: files.messages ?? 0, attachments: files.attachments ?? 0 },
      missing_files: missingFiles,
    };
    const text = `${JSON.stringify(manifest, null, 2)}\n`;
    await appender.addFile('manifest.json', archive.startedAt.getTime(), Buffer.from(text));
    appender.nextStage();
  }

  async function writeDirectory(archive: ArchiveSource, appender: ArchiveAppender) {
    const { position } = appender;
    position.directoryOffset ||= position.offset;
    const [segment] = await database.query<{ number: number; directory: Buffer }>(
      sql`select number, central_directory as directory from export_segments
       where export_id = ${archive.id} and number > ${position.segment} and central_directory <> ''
       order by number limit 1`,
    );
    if (!segment) return appender.nextStage();
    appender.append([segment.directory]);
    position.segment = segment.number;
  }

  return {
    initialPosition: (zip64) => ({ ...INITIAL_POSITION, plan: PLAN_HASH, zip64 }),
    isCompatible: ({ plan }) => plan === PLAN_HASH,
    async writeStep(archive, position) {
      const stage = PLAN[position.stage];
      if (!stage) throw new RangeError('The archive is complete');
      const appender = new ArchiveAppender(position);
      await writeStage(stage, archive, appender);
      return appender.toStep();
    },
    readsCheckpoints: (position) =>
      position.segment === 0 &&
      ['missing', 'directory'].includes(getStageKind(position) ?? '') &&
      !position.entry,
    isComplete: ({ stage }) => stage >= PLAN.length,
  };
}

function closeTable(appender: ArchiveAppender): void {
  appender.closeFile();
  appender.nextStage();
}

function writeEnd(appender: ArchiveAppender): void {
  const { offset, directoryOffset, entries } = appender.position;
  const end = buildEndRecords({ entries, offset: directoryOffset, sizeBytes: offset - directoryOffset });
  appender.append([end]);
  appender.nextStage();
}

/** Adds the path in the archive, which differs from the sender's file name. */
function addFilePath(line: string): string {
  const row = JSON.parse(line) as { id: string; filename: string };
  return JSON.stringify({ ...row, file: attachmentPath(row.id, row.filename) });
}

function readColumnTypes({ orm }: Pick<Database, 'orm'>): (table: string, column: string) => string {
  const types = new Map<string, string>();
  for (const { tableName, props } of orm.getMetadata().getAll().values())
    for (const { fieldNames = [], columnTypes: of = [] } of props)
      for (const [index, field] of fieldNames.entries()) types.set(`${tableName}.${field}`, of[index] ?? '');
  return (table, column) => {
    const type = types.get(`${table}.${column}`);
    if (type === undefined) throw new Error(`There is no column ${table}.${column}`);
    return type;
  };
}
