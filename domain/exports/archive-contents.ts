import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { ZipFile } from '../../platform/zip.ts';
import { type FileReaderOptions, readFiles } from './archive-files.ts';
import { attachmentPath } from './archive-names.ts';
import { type ExportedTable, fileNameOf } from './exported-table.ts';
import { EXPORTED_TABLES } from './exported-tables.ts';
import { type PagePosition, readNextLines } from './read-pages.ts';

/** Format and version in `manifest.json`. A change that breaks readers needs a new version (docs/export.md). */
const EXPORT_FORMAT = 'agent-email-export';
const EXPORT_FORMAT_VERSION = 1;

const README = `This archive contains all data of an organization in its agent email service.

manifest.json       contents of the archive: counts of rows and files
data/*.jsonl        one file per table, one JSON object per line, UTF-8
messages/*.eml      each message exactly as it was sent or received
attachments/*/*     files of messages and drafts, one folder each

"file" in data/messages.jsonl and data/attachments.jsonl is a path in this archive. Files that storage no longer had are
listed in data/missing_files.jsonl. Usage and metrics (data/usage_*.jsonl, data/metric_hours.jsonl) include messages that
were deleted. No file contains secrets (keys, passwords, private keys).

The format is described in docs/export.md of the service.
`;

export interface ArchiveOptions extends Omit<FileReaderOptions, 'database'> {
  database: Pick<Database, 'readAsTenant'>;
  exportId: string;
  requestedBy: string;
}

/**
 * The files of an archive, in order. Files come before rows, so that the file of every row has already been read or
 * listed as missing.
 */
export async function* readArchive(options: ArchiveOptions): AsyncGenerator<ZipFile> {
  const { startedAt: modifiedAt, counts } = options;
  yield { name: 'README.txt', modifiedAt, data: Buffer.from(README) };
  yield* readFiles(options, 'messages');
  yield* readFiles(options, 'attachments');
  const typeOf = await readColumnTypes(options);
  for (const table of EXPORTED_TABLES)
    yield { name: `data/${fileNameOf(table)}.jsonl`, modifiedAt, data: readRows(options, table, typeOf) };
  yield { name: 'data/missing_files.jsonl', modifiedAt, data: counts.missingLines() };
  yield { name: 'manifest.json', modifiedAt, data: Buffer.from(formatManifest(options)) };
}

/** The rows of a table as JSON lines, a page at a time. */
async function* readRows(
  { database, organizationId, startedAt, counts }: ArchiveOptions,
  table: ExportedTable,
  typeOf: (table: string, column: string) => string,
): AsyncGenerator<Buffer> {
  const name = fileNameOf(table);
  counts.rows[name] = 0;
  for (const source of table.sources) {
    const readPage = (after: PagePosition | null) =>
      database.readAsTenant(organizationId, (db) =>
        readNextLines(db, {
          table,
          source,
          after,
          startedAt,
          typeOf: (column) => typeOf(table.table, column),
        }),
      );
    for (let page = await readPage(null); page; page = await readPage(page.after)) {
      if (page.lines.length === 0) continue;
      counts.rows[name] += page.lines.length;
      const lines = table.table === 'attachments' ? page.lines.map(addFilePath) : page.lines;
      yield Buffer.from(`${lines.join('\n')}\n`);
    }
  }
}

/** Adds the path in the archive, which differs from the sender's file name. */
function addFilePath(line: string): string {
  const row = JSON.parse(line) as { id: string; filename: string };
  return JSON.stringify({ ...row, file: attachmentPath(row.id, row.filename) });
}

function formatManifest({
  exportId,
  organizationId,
  requestedBy,
  startedAt,
  counts,
}: ArchiveOptions): string {
  const manifest = {
    format: EXPORT_FORMAT,
    version: EXPORT_FORMAT_VERSION,
    export_id: exportId,
    organization_id: organizationId,
    requested_by: requestedBy,
    started_at: startedAt.toISOString(),
    completed_at: new Date().toISOString(),
    tables: EXPORTED_TABLES.map(fileNameOf).map((name) => ({
      name,
      file: `data/${name}.jsonl`,
      rows: counts.rows[name] ?? 0,
    })),
    files: counts.files,
    missing_files: counts.missingFiles,
  };
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

/** The types of the exported columns, as PostgreSQL names them: `timestamp with time zone`. */
async function readColumnTypes({
  database,
  organizationId,
}: ArchiveOptions): Promise<(table: string, column: string) => string> {
  const columns = await database.readAsTenant(organizationId, (db) =>
    db
      .selectFrom(
        sql<{
          table_schema: string;
          table_name: string;
          column_name: string;
          data_type: string;
        }>`information_schema.columns`.as('c'),
      )
      .select(['c.table_name', 'c.column_name', 'c.data_type'])
      .where('c.table_schema', '=', sql<string>`current_schema()`)
      .execute(),
  );
  const types = new Map(columns.map((each) => [`${each.table_name}.${each.column_name}`, each.data_type]));
  return (table, column) => {
    const type = types.get(`${table}.${column}`);
    if (type === undefined) throw new Error(`There is no column ${table}.${column}`);
    return type;
  };
}
