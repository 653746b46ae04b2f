import { type Static, Type } from 'typebox';
import { EXPORT_STATUSES } from '../../domain/exports/export.entity.ts';
import type { ExportDetails } from '../../domain/exports/export.service.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  resource,
  strictObject,
  timestamp,
} from '../schemas.ts';

const count = (description: string) => Type.Integer({ minimum: 0, description });

const Previous = resource('export', {
  export_id: id('Export id.'),
  status: enumOf(['failed', 'canceled']),
  status_detail: nullableText(1_000),
  completed_at: nullableTimestamp(),
});

export const ExportRecord = resource(
  'export',
  {
    export_id: id('Export id (exp_…).'),
    org_id: id('The exported organization.'),
    status: enumOf(EXPORT_STATUSES),
    status_detail: nullableText(1_000, {
      description: 'Why the export failed or was canceled; null otherwise.',
    }),
    progress: strictObject({
      files_done: count('Messages and attachments in the archive so far.'),
      files_total: count('Counted at the start; 0 before.'),
      rows_done: count('Lines written to data/*.jsonl so far.'),
      rows_total: count('An estimate, made at the start; 0 before. rows_done may be more in the end.'),
      bytes_written: count('Archive size so far.'),
    }),
    requested_by: id('API key that requested it first.'),
    created_at: timestamp(),
    completed_at: nullableTimestamp('When the export became ready, failed or was canceled.'),
    available_until: nullableTimestamp('When the archive expires; null unless ready or expired.'),
    download_url: nullableText(8_192, {
      description: 'Download link that needs no credential, valid until expires_at; null unless ready.',
    }),
    expires_at: nullableTimestamp('When download_url stops working, 24 hours after this response.'),
    size_bytes: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      minimum: 0,
      description: 'Archive size; null unless ready.',
    }),
    previous: Type.Unsafe<Static<typeof Previous> | null>({
      anyOf: [Previous, Type.Null()],
      description: 'The previous export, if it failed or was canceled.',
    }),
  },
  { $id: 'Export', title: 'Export' },
);

export function presentExport(details: ExportDetails): Static<typeof ExportRecord> {
  const { export: row, link } = details;
  return {
    object: 'export',
    export_id: row.id,
    org_id: row.organizationId,
    status: row.status,
    status_detail: row.statusDetail,
    progress: {
      files_done: row.filesDone,
      files_total: row.filesTotal,
      rows_done: row.rowsDone,
      rows_total: row.rowsTotal,
      bytes_written: row.sizeBytes,
    },
    requested_by: row.requestedBy,
    created_at: row.createdAt.toISOString(),
    completed_at: row.completedAt?.toISOString() ?? null,
    available_until: row.expiresAt?.toISOString() ?? null,
    download_url: link?.url ?? null,
    expires_at: link?.expiresAt.toISOString() ?? null,
    size_bytes: row.status === 'ready' ? row.sizeBytes : null,
    previous: presentPrevious(details.previousFailure),
  };
}

function presentPrevious(row: ExportDetails['previousFailure']): Static<typeof Previous> | null {
  if (!row || (row.status !== 'failed' && row.status !== 'canceled')) return null;
  return {
    object: 'export',
    export_id: row.id,
    status: row.status,
    status_detail: row.statusDetail,
    completed_at: row.completedAt?.toISOString() ?? null,
  };
}
