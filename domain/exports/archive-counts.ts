import type { Export } from './export.entity.ts';

export type FileFolder = 'messages' | 'attachments';

export type ExportCounts = Pick<Export, 'rowsDone' | 'rowsTotal' | 'filesDone' | 'filesTotal' | 'sizeBytes'>;

const LINES_PER_CHUNK = 1_000;

/** What an archive contains so far. */
export class ArchiveCounts {
  /** Rows by the name of their file. */
  readonly rows: Record<string, number> = {};
  readonly files: Record<FileFolder, number> = { messages: 0, attachments: 0 };
  sizeBytes = 0;
  readonly #missing: string[] = [];
  #goneFiles = 0;

  /** Lists a file that storage has lost wholly or in part. */
  addMissing(file: string, reason: 'gone' | 'cut short', sizeBytes: number): void {
    this.#missing.push(`${JSON.stringify({ file, reason, size_bytes: sizeBytes })}\n`);
    if (reason === 'gone') this.#goneFiles += 1;
  }

  get missingFiles(): number {
    return this.#missing.length;
  }

  /** Yields the missing files as JSON lines, some at a time. */
  async *missingLines(): AsyncGenerator<Buffer> {
    for (let start = 0; start < this.#missing.length; start += LINES_PER_CHUNK)
      yield Buffer.from(this.#missing.slice(start, start + LINES_PER_CHUNK).join(''));
  }

  /** The totals were estimated at the start. They grow when more is written, because mail arrives during the export. */
  toProgress({ rowsTotal, filesTotal }: Pick<ExportCounts, 'rowsTotal' | 'filesTotal'>): ExportCounts {
    const rowsDone = Object.values(this.rows).reduce((sum, rows) => sum + rows, 0);
    const filesDone = this.files.messages + this.files.attachments + this.#goneFiles;
    return {
      rowsDone,
      rowsTotal: Math.max(rowsTotal, rowsDone),
      filesDone,
      filesTotal: Math.max(filesTotal, filesDone),
      sizeBytes: this.sizeBytes,
    };
  }
}

export const formatProgress = ({
  filesDone,
  filesTotal,
  rowsDone,
  rowsTotal,
  sizeBytes,
}: ExportCounts): string =>
  `${filesDone} of ${filesTotal} files, ${rowsDone} of ${rowsTotal} rows, ${sizeBytes} bytes`;
