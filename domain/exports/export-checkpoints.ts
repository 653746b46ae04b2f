import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import type { UploadedPart } from '../../platform/multipart-uploads.ts';
import type { ArchivePosition } from './archive-position.ts';
import { type Export, ExportEntity } from './export.entity.ts';
import { ExportSegmentEntity } from './export-segment.entity.ts';
import type { ArchiveSnapshot } from './part-buffer.ts';

/** Another worker has saved a newer checkpoint, or the export has ended. */
export class StaleCheckpointError extends Error {}

export type Progress = Pick<Export, 'rowsDone' | 'rowsTotal' | 'filesDone' | 'filesTotal' | 'sizeBytes'>;

/**
 * Returns the progress columns of an export at a position. The totals were estimated when it started; they grow with what
 * is written beyond them, because mail arrives meanwhile.
 */
export function toProgress(
  { rows, files, missingFiles, offset }: ArchivePosition,
  { rowsTotal, filesTotal }: Pick<Progress, 'rowsTotal' | 'filesTotal'>,
): Progress {
  const sum = (counts: Record<string, number>) => Object.values(counts).reduce((all, each) => all + each, 0);
  const rowsDone = sum(rows);
  const filesDone = sum(files) + missingFiles;
  return {
    rowsDone,
    rowsTotal: Math.max(rowsTotal, rowsDone),
    filesDone,
    filesTotal: Math.max(filesTotal, filesDone),
    sizeBytes: offset,
  };
}

/** Saves the progress of a running export. */
export interface Checkpoints {
  /** Number of the last saved checkpoint. */
  readonly number: number;
  /** Number of parts uploaded. */
  readonly parts: number;
  /**
   * Saves a snapshot with the parts uploaded since the last one. After the commit, writing resumes from it.
   *
   * @throws StaleCheckpointError
   */
  save(snapshot: ArchiveSnapshot, parts: UploadedPart[], updatedAt: Date): Promise<void>;
}

/** Continues from the last checkpoint of an export. */
export async function openCheckpoints(
  database: Pick<Database, 'query' | 'systemTransaction'>,
  row: Pick<Export, 'id' | 'organizationId' | 'checkpoint' | 'rowsTotal' | 'filesTotal'>,
): Promise<Checkpoints> {
  const last = await readLastSegment(database, row.id);
  let number = row.checkpoint;
  return {
    get number() {
      return number;
    },
    get parts() {
      return last.part;
    },
    async save({ position, partBuffer, centralDirectory, missingFiles }, parts, updatedAt) {
      const segments = parts.length > 0 ? parts : [null];
      await database.systemTransaction(async ({ em }) => {
        const saved = await em.nativeUpdate(
          ExportEntity,
          { id: row.id, status: 'running', checkpoint: number },
          { checkpoint: number + 1, position, partBuffer, updatedAt, ...toProgress(position, row) },
        );
        if (saved === 0) throw new StaleCheckpointError();
        await em.insertMany(
          ExportSegmentEntity,
          segments.map((part, index) => ({
            exportId: row.id,
            number: last.segment + 1 + index,
            organizationId: row.organizationId,
            partNumber: part?.number ?? null,
            etag: part?.etag ?? null,
            centralDirectory: index === 0 ? centralDirectory : Buffer.alloc(0),
            missingFiles: index === 0 ? missingFiles : '',
          })),
        );
      });
      number += 1;
      last.segment += segments.length;
      last.part = parts.at(-1)?.number ?? last.part;
    },
  };
}

async function readLastSegment(
  database: Pick<Database, 'query'>,
  exportId: string,
): Promise<{ segment: number; part: number }> {
  const [last] = await database.query<{ segment: number; part: number }>(
    sql`select coalesce(max(number), 0)::int as segment, coalesce(max(part_number), 0)::int as part
     from export_segments where export_id = ${exportId}`,
  );
  return last ?? { segment: 0, part: 0 };
}
