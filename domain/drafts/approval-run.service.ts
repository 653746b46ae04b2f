import { LockMode, sql } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { EventService } from '../events/event.service.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { type Draft, DraftEntity } from './draft.entity.ts';
import { createSystemScope, recordDraftRejected, rejectDraft } from './reject-draft.ts';

/** `decided`: the request is over. `waitUntil`: it still waits, ISO 8601. */
export type SettledApproval = 'expired' | 'decided' | { waitUntil: string };

/** The database steps of the workflow `awaitApproval`, and its sweep. Every step can be retried. */
export interface ApprovalRunService {
  /** Emails those who may approve, unless they got an email in the last ten minutes: then the sweep does. */
  announce(draftId: string): Promise<void>;
  /** Rejects the draft if its time is over. */
  settle(draftId: string, episode: number): Promise<SettledApproval>;
  /** Rejects the draft because an operator canceled the run. */
  cancel(draftId: string, episode: number): Promise<void>;
  /** Emails what earlier emails did not count. @returns the number of organizations. */
  announceRest(): Promise<number>;
}

export interface ApprovalRunOptions {
  database: Database;
  events: EventService;
  notifications: Pick<NotificationService, 'notifyMembers'>;
}

/** Between two emails to the approvers of an organization. */
const DIGEST_INTERVAL = '10 minutes';
const MAX_ORGANIZATIONS = 200;

export function createApprovalRunService({
  database,
  events,
  notifications,
}: ApprovalRunOptions): ApprovalRunService {
  const announce = (organizationId: string) =>
    database.systemTransaction((transaction) => announceWaiting(transaction, notifications, organizationId));
  return {
    async announce(draftId) {
      const [draft] = await database.query<{ organizationId: string }>(
        sql`select org_id as "organizationId" from drafts where id = ${draftId}`,
      );
      if (draft) await announce(draft.organizationId);
    },

    async announceRest() {
      const waiting = await database.query<{ organizationId: string }>(sql`
        select distinct d.org_id as "organizationId" from drafts d
        where d.send_status = 'pending_approval' and not d.approval_announced
          and not exists (select from approval_digests g
            where g.org_id = d.org_id and g.sent_at > now() - ${DIGEST_INTERVAL}::interval)
        limit ${MAX_ORGANIZATIONS}`);
      for (const { organizationId } of waiting) await announce(organizationId);
      return waiting.length;
    },

    settle: (draftId, episode) =>
      database.systemTransaction(async (transaction) => {
        const draft = await lockEpisode(transaction, draftId, episode);
        if (!draft?.approvalExpiresAt) return 'decided';
        if (draft.approvalExpiresAt.getTime() > Date.now())
          return { waitUntil: draft.approvalExpiresAt.toISOString() };
        await end(transaction, events, draft, 'expired');
        return 'expired';
      }),

    cancel: (draftId, episode) =>
      database.systemTransaction(async (transaction) => {
        const draft = await lockEpisode(transaction, draftId, episode);
        if (draft) await end(transaction, events, draft, 'canceled');
      }),
  };
}

function lockEpisode({ em }: Transaction, draftId: string, episode: number): Promise<Draft | null> {
  return em.findOne(
    DraftEntity,
    { id: draftId, approvalEpisode: episode, sendStatus: 'pending_approval' },
    { lockMode: LockMode.PESSIMISTIC_WRITE },
  );
}

async function end(
  transaction: Transaction,
  events: EventService,
  draft: Draft,
  decision: 'expired' | 'canceled',
): Promise<void> {
  rejectDraft(draft, { decision, note: null, decidedById: null });
  await recordDraftRejected(transaction, events, createSystemScope(draft), draft, { decision });
}

/**
 * One email counts everything that waits in the organization. The row of the last email serializes concurrent calls, and
 * a draft that commits after them is not counted, so that the next email is about it.
 */
async function announceWaiting(
  transaction: Transaction,
  notifications: Pick<NotificationService, 'notifyMembers'>,
  organizationId: string,
): Promise<void> {
  const { em } = transaction;
  const claimed = await em.execute<{ sentAt: string }[]>(sql`
    insert into approval_digests as g (org_id, sent_at)
    select ${organizationId}, now()
    where exists (select from drafts
      where org_id = ${organizationId} and send_status = 'pending_approval' and not approval_announced)
    on conflict (org_id) do update set sent_at = now()
    where g.sent_at <= now() - ${DIGEST_INTERVAL}::interval
    returning sent_at as "sentAt"`);
  const [digest] = claimed;
  if (!digest) return;
  await em.execute(sql`
    update drafts set approval_announced = true
    where org_id = ${organizationId} and send_status = 'pending_approval' and not approval_announced`);
  const [waiting] = await em.execute<{ count: number; expiresAt: string }[]>(sql`
    select count(*)::int as count, min(approval_expires_at) as "expiresAt" from drafts
    where org_id = ${organizationId} and send_status = 'pending_approval'`);
  if (!waiting) return;
  await notifications.notifyMembers(transaction, {
    organizationId,
    permission: 'messages:approve',
    template: 'approvals-pending',
    params: { organizationId, count: waiting.count, expiresAt: new Date(waiting.expiresAt).toISOString() },
    dedupeKey: `approvals-pending/${organizationId}/${new Date(digest.sentAt).toISOString()}`,
  });
}
