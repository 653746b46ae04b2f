import { LockMode } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { UploadedPart } from '../../platform/part-uploads.ts';
import type { Storage } from '../../platform/storage.ts';
import { asPeopleRead } from '../notifications/as-people-read.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { DiscardedObjectEntity } from '../stored-objects/discarded-object.entity.ts';
import { type Export, ExportEntity } from './export.entity.ts';
import { ExportPieceEntity } from './export-piece.entity.ts';

/** How an export ends, one way or another. */
export interface ExportEnding {
  /** Puts the parts together, offers the archive, and tells the owners. */
  complete(row: Export, archive: { sizeBytes: number; checkpoint: number }): Promise<void>;
  /** Ends an export that is not ready, and removes what there is of it. Returns its status. */
  giveUp(exportId: string, status: 'failed' | 'canceled', detail: string): Promise<string>;
  /**
   * What is left when nothing went its way: archives past their time, parts of exports whose run was terminated.
   * Returns how many exports it changed.
   */
  tidy(): Promise<number>;
}

export interface ExportEndingOptions {
  database: Database;
  storage: Pick<Storage, 'sizeOf' | 'partUploads'>;
  notifications: NotificationService;
  now: () => Date;
}

/** How long an archive is offered, and its bytes stay after that: the last link given out lives a day. */
const OFFERED_FOR_MS = 24 * 3_600_000;
const BYTES_STAY_MS = 25 * 3_600_000;
const NOTHING_OPEN = { uploadId: null, position: null, carry: null };
const MAX_DETAIL = 1_000;
/** Whoever writes has ended by then, and its own run has cleaned up. */
const CLEANED_UP_AFTER_MS = 5 * 60_000;

export function createExportEnding({
  database,
  storage,
  notifications,
  now,
}: ExportEndingOptions): ExportEnding {
  const uploads = storage.partUploads;

  /** The worker may have died after storage completed it: then it is there. */
  async function complete(
    row: Export,
    { sizeBytes, checkpoint }: { sizeBytes: number; checkpoint: number },
  ): Promise<void> {
    if ((await storage.sizeOf(row.storageKey)) !== sizeBytes)
      await uploads.complete(row.storageKey, row.uploadId ?? '', await partsOf(database, row.id));
    await database.systemTransaction(async (transaction) => {
      const { em } = transaction;
      const completedAt = now();
      const expiresAt = new Date(completedAt.getTime() + OFFERED_FOR_MS);
      const ready = await em.nativeUpdate(
        ExportEntity,
        { id: row.id, status: 'running', checkpoint },
        {
          status: 'ready',
          sizeBytes,
          completedAt,
          expiresAt,
          updatedAt: completedAt,
          ...NOTHING_OPEN,
        },
      );
      const dueAt = ready > 0 ? new Date(expiresAt.getTime() + BYTES_STAY_MS) : completedAt;
      await discard(transaction, row, dueAt);
      await em.nativeDelete(ExportPieceEntity, { exportId: row.id });
      if (ready > 0) await tellOwners(transaction, { ...row, sizeBytes, expiresAt });
    });
  }

  async function tellOwners(
    transaction: Transaction,
    row: Pick<Export, 'id' | 'organizationId' | 'requestedBy' | 'sizeBytes'> & { expiresAt: Date },
  ): Promise<void> {
    const [key] = await transaction.em.execute<{ name: string }[]>(
      'select name from api_keys where id = ? and org_id = ?',
      [row.requestedBy, row.organizationId],
    );
    await notifications.notifyOwners(transaction, {
      organizationId: row.organizationId,
      template: 'export-ready',
      params: {
        organizationId: row.organizationId,
        exportId: row.id,
        keyId: row.requestedBy,
        keyName: key?.name ?? null,
        sizeBytes: row.sizeBytes,
        expiresAt: asPeopleRead(row.expiresAt),
      },
      dedupeKey: `export-ready/${row.id}`,
    });
  }

  /** Removes parts and what was remembered of them. An archive that was completed at that very time goes as well. */
  async function cleanUp(
    row: Pick<Export, 'id' | 'organizationId' | 'storageKey' | 'uploadId'>,
  ): Promise<void> {
    if (row.uploadId) await uploads.abort(row.storageKey, row.uploadId);
    await database.systemTransaction(async (transaction) => {
      const { em } = transaction;
      await em.nativeDelete(ExportPieceEntity, { exportId: row.id });
      await em.nativeUpdate(ExportEntity, { id: row.id, uploadId: row.uploadId }, NOTHING_OPEN);
      await discard(transaction, row, now());
    });
  }

  return {
    complete,

    async giveUp(exportId, status, detail) {
      const row = await database.systemTransaction(async ({ em }) => {
        const locked = await em.findOne(
          ExportEntity,
          { id: exportId },
          { lockMode: LockMode.PESSIMISTIC_WRITE },
        );
        if (locked && (locked.status === 'queued' || locked.status === 'running')) {
          const completedAt = now();
          Object.assign(locked, { status, statusDetail: detail.slice(0, MAX_DETAIL), completedAt });
        }
        return locked;
      });
      if (row && row.status !== 'ready' && row.uploadId) await cleanUp(row);
      return row?.status ?? 'gone';
    },

    async tidy() {
      const expired = await database.statement<{ id: string }>(
        `update exports set status = 'expired', updated_at = ? where status = 'ready' and expires_at <= ? returning id`,
        [now(), now()],
      );
      const left = await database.statement<Parameters<typeof cleanUp>[0]>(
        `select id, org_id as "organizationId", storage_key as "storageKey", upload_id as "uploadId" from exports
         where upload_id is not null and status in ('failed', 'canceled', 'expired') and updated_at < ?
         order by updated_at limit 20`,
        [new Date(now().getTime() - CLEANED_UP_AFTER_MS)],
      );
      for (const row of left) await cleanUp(row);
      return expired.length + left.length;
    },
  };
}

function partsOf(database: Database, exportId: string): Promise<UploadedPart[]> {
  return database.statement<UploadedPart>(
    `select part_number as number, etag from export_pieces
     where export_id = ? and part_number is not null order by part_number`,
    [exportId],
  );
}

async function discard(
  { em }: Transaction,
  { storageKey, organizationId }: Pick<Export, 'storageKey' | 'organizationId'>,
  dueAt: Date,
): Promise<void> {
  await em.upsert(DiscardedObjectEntity, { storageKey, organizationId, dueAt, deleting: false });
}
