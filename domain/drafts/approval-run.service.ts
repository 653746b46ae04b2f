import { sql } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { EventService } from '../events/event.service.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { type Draft, DraftEntity } from './draft.entity.ts';
import { createSystemScope, rejectDraft } from './reject-draft.ts';

/** `decided`: the request has ended. `waitUntil`: when the waiting request expires, ISO 8601. */
export type SettledApproval = 'expired' | 'decided' | { waitUntil: string };

export interface ApprovalRunOptions {
  database: Database;
  events: EventService;
  notifications: Pick<NotificationService, 'notifyMembers'>;
}

/** Between two emails to the approvers of an organization. */
const DIGEST_INTERVAL = '10 minutes';
const MAX_ORGANIZATIONS = 200;

/** The database steps of the workflow `awaitApproval`, and its sweep. Every step can be retried. */
export type ApprovalRunService = ReturnType<typeof createApprovalRunService>;

export function createApprovalRunService({ database, events, notifications }: ApprovalRunOptions) {
  const announce = (organizationId: string) =>
    database.systemTransaction((transaction) => announceWaiting(transaction, notifications, organizationId));
  return {
    /** Emails those who may approve. If they got an email in the last ten minutes, the sweep emails them later. */
    async announce(draftId: string): Promise<void> {
      const draft = await database.db
        .selectFrom('drafts')
        .select('org_id as organizationId')
        .where('id', '=', draftId)
        .executeTakeFirst();
      if (draft) await announce(draft.organizationId);
    },

    /** Emails approvers about drafts that no earlier email counted. @returns the number of organizations. */
    async announceRest(): Promise<number> {
      const waiting = await findUnannounced(database.db);
      for (const { organizationId } of waiting) await announce(organizationId);
      return waiting.length;
    },

    /** Rejects the draft if its request has expired. */
    settle: (draftId: string, generation: number): Promise<SettledApproval> =>
      database.systemTransaction(async (transaction) => {
        const draft = await lockRun(transaction.db, draftId, generation);
        if (!draft?.approvalExpiresAt) return 'decided';
        if (draft.approvalExpiresAt.getTime() > Date.now())
          return { waitUntil: draft.approvalExpiresAt.toISOString() };
        await rejectDraft(transaction, events, draft, {
          scope: createSystemScope(draft),
          decision: 'expired',
        });
        return 'expired';
      }),

    /** Rejects the draft because an operator canceled the run. */
    cancel: (draftId: string, generation: number): Promise<void> =>
      database.systemTransaction(async (transaction) => {
        const draft = await lockRun(transaction.db, draftId, generation);
        if (!draft) return;
        await rejectDraft(transaction, events, draft, {
          scope: createSystemScope(draft),
          decision: 'canceled',
        });
      }),
  };
}

const longAgo = sql<Date>`now() - ${DIGEST_INTERVAL}::interval`;

function findUnannounced(db: Db): Promise<{ organizationId: string }[]> {
  return db
    .selectFrom('drafts')
    .select('org_id as organizationId')
    .distinct()
    .where('send_status', '=', 'pending_approval')
    .where('approval_announced', '=', false)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('approval_digests as digest')
            .whereRef('digest.org_id', '=', 'drafts.org_id')
            .where('digest.sent_at', '>', longAgo),
        ),
      ),
    )
    .limit(MAX_ORGANIZATIONS)
    .execute();
}

function lockRun(db: Db, draftId: string, generation: number): Promise<Draft | undefined> {
  return db
    .selectFrom('drafts')
    .select(columnsOf(DraftEntity))
    .where('id', '=', draftId)
    .where('approval_generation', '=', generation)
    .where('send_status', '=', 'pending_approval')
    .forUpdate()
    .executeTakeFirst();
}

/**
 * One email counts all drafts that wait in the organization. The row of the last email serializes concurrent calls. A
 * draft that is committed after the count is announced by the next email.
 */
async function announceWaiting(
  transaction: Transaction,
  notifications: Pick<NotificationService, 'notifyMembers'>,
  organizationId: string,
): Promise<void> {
  const { db } = transaction;
  const digest = await claimDigest(db, organizationId);
  if (!digest) return;
  await db
    .updateTable('drafts')
    .set({ approval_announced: true })
    .where('org_id', '=', organizationId)
    .where('send_status', '=', 'pending_approval')
    .where('approval_announced', '=', false)
    .execute();
  const waiting = await db
    .selectFrom('drafts')
    .select(({ fn }) => [fn.countAll<number>().as('count'), fn.min('approval_expires_at').as('expiresAt')])
    .where('org_id', '=', organizationId)
    .where('send_status', '=', 'pending_approval')
    .executeTakeFirst();
  if (!waiting?.expiresAt) return;
  await notifications.notifyMembers(transaction, {
    organizationId,
    permission: 'messages:approve',
    template: 'approvals-pending',
    params: { organizationId, count: waiting.count, expiresAt: waiting.expiresAt.toISOString() },
    dedupeKey: `approvals-pending/${organizationId}/${digest.sentAt.toISOString()}`,
  });
}

/** @returns undefined if there is nothing to announce or the last email is too recent. */
function claimDigest(db: Db, organizationId: string): Promise<{ sentAt: Date } | undefined> {
  return db
    .insertInto('approval_digests')
    .columns(['org_id', 'sent_at'])
    .expression(
      db
        .selectNoFrom((eb) => [eb.val(organizationId).as('org_id'), sql<Date>`now()`.as('sent_at')])
        .where(({ exists, selectFrom }) =>
          exists(
            selectFrom('drafts')
              .where('org_id', '=', organizationId)
              .where('send_status', '=', 'pending_approval')
              .where('approval_announced', '=', false),
          ),
        ),
    )
    .onConflict((conflict) =>
      conflict
        .column('org_id')
        .doUpdateSet({ sent_at: sql`now()` })
        .where('approval_digests.sent_at', '<=', longAgo),
    )
    .returning('sent_at as sentAt')
    .executeTakeFirst();
}
