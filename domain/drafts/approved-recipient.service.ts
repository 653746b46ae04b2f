import { sql } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import { notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { Scope } from '../identity/scope.ts';
import { type ApprovedRecipient, ApprovedRecipientEntity } from './approval.entity.ts';
import { requireInboxWithinReach, withinReach } from './find-draft.ts';

/** Addresses to which an inbox may send without approval, because an approver allowed it. */
export type ApprovedRecipientService = ReturnType<typeof createApprovedRecipientService>;

export function createApprovedRecipientService({ database }: { database: Database }) {
  return {
    /** @throws AppError `not_found` for the inbox. */
    list: (scope: Scope, inboxId: string, page: PageRequest): Promise<Page<ApprovedRecipient>> =>
      database.read(scope, async ({ db }) => {
        await requireInboxWithinReach(db, scope, inboxId);
        return findPage(
          db
            .selectFrom('approved_recipients')
            .select(columnsOf(ApprovedRecipientEntity))
            .where((eb) => eb.and({ ...withinReach(scope), inbox_id: inboxId }))
            .where('expires_at', '>', new Date()),
          'approved_recipients.id',
          page,
        );
      }),

    /** @throws AppError `not_found`. */
    remove: (scope: Scope, id: string): Promise<void> =>
      database.transaction(scope, async ({ db }) => {
        const removed = await db
          .deleteFrom('approved_recipients')
          .where('id', '=', id)
          .where((eb) => eb.and(withinReach(scope)))
          .returning('inbox_id as inboxId')
          .executeTakeFirst();
        if (!removed) throw notFound('approved recipient', id);
        await recordAudit(db, scope, {
          action: 'approved_recipient.removed',
          resourceType: 'inbox',
          resourceId: removed.inboxId,
          details: { approved_recipient_id: id },
        });
      }),
  };
}

const PURGE_BATCH_SIZE = 1_000;

/** Deletes expired addresses. Returns the number of deleted rows. */
export async function purgeApprovedRecipients({ db }: Database): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('approved_recipients')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('approved_recipients')
        .select('id')
        .where('expires_at', '<', sql<Date>`now()`)
        .limit(PURGE_BATCH_SIZE),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}
