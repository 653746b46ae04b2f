import { LockMode } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { findRequesterProblem, REQUESTER_NOT_ALLOWED } from '../identity/requester.ts';
import type { Actor } from '../identity/scope.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { recordRefusedAct } from '../notifications/notify-refused-act.ts';
import { ExportEntity } from './export.entity.ts';

/** Cancels an unfinished export whose requester may no longer export. The next request starts another one. */
export function refuseIfNotAllowed(
  {
    database,
    notifications,
    now = () => new Date(),
  }: {
    database: Database;
    notifications: Pick<NotificationService, 'notifyMembers'>;
    now?: () => Date;
  },
  exportId: string,
): Promise<void> {
  return database.systemTransaction(async (transaction) => {
    const { db, em } = transaction;
    const row = await em.findOne(
      ExportEntity,
      { id: exportId, status: { $in: ['queued', 'running'] } },
      { lockMode: LockMode.PESSIMISTIC_WRITE },
    );
    if (!row) return;
    const { organizationId, requestedBy: id } = row;
    const actor: Actor = { kind: id.startsWith('key_') ? 'api_key' : 'user', id };
    const problem = await findRequesterProblem(db, { organizationId, actor }, { act: 'export' });
    if (!problem) return;
    Object.assign(row, { status: 'canceled', statusDetail: REQUESTER_NOT_ALLOWED, completedAt: now() });
    await recordRefusedAct(transaction, notifications, {
      organizationId,
      act: 'export',
      actor,
      problem,
      resource: { type: 'export', id: exportId },
    });
  });
}
