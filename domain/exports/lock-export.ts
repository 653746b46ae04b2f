import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { findRequesterProblem, REQUESTER_NOT_ALLOWED } from '../identity/requester.ts';
import type { Actor } from '../identity/scope.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { recordRefusedAct } from '../notifications/notify-refused-act.ts';
import { type Export, ExportEntity, UNFINISHED_STATUSES } from './export.entity.ts';

/**
 * Locks an unfinished export. Cancels the export if its requester may no longer export; the next request starts another
 * one.
 *
 * @param of.uploadId locks the export only if this upload writes it; undefined: any upload.
 * @returns null if the export is canceled or has ended.
 */
export async function lockIfAllowed(
  transaction: Transaction,
  {
    notifications,
    now = () => new Date(),
  }: { notifications: Pick<NotificationService, 'notifyMembers'>; now?: () => Date },
  { exportId, uploadId }: { exportId: string; uploadId?: string },
): Promise<Export | null> {
  const { db } = transaction;
  const row = await db
    .selectFrom('exports')
    .select(columnsOf(ExportEntity))
    .where('id', '=', exportId)
    .where('status', 'in', UNFINISHED_STATUSES)
    .$if(uploadId !== undefined, (query) => query.where('upload_id', '=', uploadId ?? null))
    .forUpdate()
    .executeTakeFirst();
  if (!row) return null;
  const { organizationId, requestedBy: id } = row;
  const actor: Actor = { kind: id.startsWith('key_') ? 'api_key' : 'user', id };
  const problem = await findRequesterProblem(db, { organizationId, actor }, { act: 'export' });
  if (!problem) return row;
  const canceled = { status: 'canceled', status_detail: REQUESTER_NOT_ALLOWED } as const;
  await db
    .updateTable('exports')
    .set({ ...canceled, completed_at: now(), updated_at: now() })
    .where('id', '=', exportId)
    .execute();
  const resource = { type: 'export' as const, id: exportId };
  await recordRefusedAct(transaction, notifications, {
    organizationId,
    act: 'export',
    actor,
    problem,
    resource,
  });
  return null;
}
