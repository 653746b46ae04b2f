import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';
import { findPage } from '../../platform/database/find-page.ts';
import type { Row } from '../../platform/database/find-rows.ts';
import { notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { Scope } from '../identity/scope.ts';
import { type ApprovedRecipient, ApprovedRecipientEntity } from './approved-recipient.entity.ts';
import { readInboxWithinReach, withinReach } from './find-draft.ts';

/** Addresses to which an inbox sends without approval, because an approver remembered them. */
export interface ApprovedRecipientService {
  /** @throws AppError `not_found` for the inbox. */
  list(scope: Scope, inboxId: string, page: PageRequest): Promise<Page<Row<ApprovedRecipient>>>;
  /** @throws AppError `not_found`. */
  remove(scope: Scope, id: string): Promise<void>;
}

export function createApprovedRecipientService({
  database,
}: {
  database: Database;
}): ApprovedRecipientService {
  return {
    list: (scope, inboxId, page) =>
      database.read(scope, async (reader) => {
        await readInboxWithinReach(reader, scope, inboxId);
        const where = { ...withinReach(scope), inboxId, expiresAt: { $gt: new Date() } };
        return findPage(reader, ApprovedRecipientEntity, { where, page });
      }),

    remove: (scope, id) =>
      database.transaction(scope, async ({ em }) => {
        const recipient = await em.findOne(ApprovedRecipientEntity, { id, ...withinReach(scope) });
        if (!recipient) throw notFound('approved recipient', id);
        em.remove(recipient);
        await recordAudit(em, scope, {
          action: 'approved_recipient.removed',
          resourceType: 'inbox',
          resourceId: recipient.inboxId,
          details: { approved_recipient_id: id },
        });
      }),
  };
}

/** Deletes what has expired. Returns the number of deleted rows. */
export function purgeApprovedRecipients(database: Database): Promise<number> {
  return deleteRows(
    database,
    sql`delete from approved_recipients where id in (
      select id from approved_recipients where expires_at < now() limit ${PURGE_BATCH_SIZE})`,
  );
}

const PURGE_BATCH_SIZE = 1_000;
