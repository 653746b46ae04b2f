import { sql } from 'kysely';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { DRAFT_APPROVED, DRAFT_REJECTED } from '../../workflows/drafts/await-approval.contract.ts';
import { findDraftAttachments } from '../attachments/attach-files.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { requireApprover } from '../identity/approver.ts';
import { REQUESTER_NOT_ALLOWED, REQUESTER_PROBLEMS } from '../identity/requester.ts';
import type { Scope } from '../identity/scope.ts';
import type { MessageDetails } from '../messages/message-details.ts';

import type { Draft } from './draft.entity.ts';
import { recipientKeysOf, signalApproval } from './draft-approval.ts';
import { findSendProblem, requesterOf } from './draft-requester.ts';
import { scheduleSend } from './draft-schedule.ts';
import { type DraftDetails, versionConflict, withinReach } from './find-draft.ts';
import { refuseRequester, rejectDraft } from './reject-draft.ts';
import { type SendDraftOptions, sendDraft } from './send-draft.ts';
import { lockDraft, saveDraft } from './stored-draft.ts';

export interface Decision {
  /** The version that the approver has seen. */
  version: number;
  /** Why. */
  note?: string | null | undefined;
}

export type ApprovalService = ReturnType<typeof createApprovalService>;

const REMEMBERED_DAYS = 30;

export function createApprovalService({ database, ...options }: SendDraftOptions & { database: Database }) {
  return {
    /**
     * Sends or schedules a draft that waits for approval. If two approvers decide, or the draft is changed at the same
     * time, one of them succeeds. If the requester may no longer send, the draft is rejected instead.
     *
     * @param decision.rememberRecipients lets the inbox send to the draft's recipients without approval for 30 days.
     * @throws AppError `not_found`, `conflict` if the draft does not wait or has another version, `permission_denied`,
     * and the errors of a refused send, after which the draft still waits.
     */
    approve: (
      scope: Scope,
      draftId: string,
      decision: Decision & { rememberRecipients?: boolean | undefined },
    ): Promise<MessageDetails | DraftDetails> =>
      database.transaction(scope, async (transaction) => {
        const { draft, approver } = await lockForDecision(transaction, scope, draftId, decision);
        await requireAllowedRequester(transaction, options, draft);
        const remembered = decision.rememberRecipients ? recipientKeysOf(draft) : [];
        const result = await sendOrSchedule(transaction, options, { scope, draft, approver, decision });
        await rememberRecipients(transaction.db, draft, { approver, emails: remembered });
        signalApproval(transaction, options.outbox, draft, DRAFT_APPROVED);
        await recordApproved(transaction, options, { scope, draft, approver, decision, result, remembered });
        return result;
      }),

    /** Rejects a draft that waits for approval. @throws AppError as `approve`. */
    reject: (scope: Scope, draftId: string, decision: Decision): Promise<DraftDetails> =>
      database.transaction(scope, async (transaction) => {
        const { draft, approver } = await lockForDecision(transaction, scope, draftId, decision);
        signalApproval(transaction, options.outbox, draft, DRAFT_REJECTED);
        const rejected = await rejectDraft(transaction, options.events, draft, {
          scope,
          decision: 'rejected',
          note: toNote(decision),
          decidedById: approver,
        });
        return { draft: rejected, attachments: await findDraftAttachments(transaction.db, draft.id) };
      }),
  };
}

/** @throws AppError `conflict`, which commits the rejection, if the requester may no longer send. */
async function requireAllowedRequester(
  transaction: Transaction,
  options: SendDraftOptions,
  draft: Draft,
): Promise<void> {
  const found = await findSendProblem(transaction.db, draft, { lock: true });
  if (!found) return;
  await refuseRequester(transaction, options, draft, found);
  signalApproval(transaction, options.outbox, draft, DRAFT_REJECTED);
  throw new AppError('conflict', {
    detail: `The requester no longer has permission to send the draft, so it is now rejected. ${REQUESTER_PROBLEMS[found.problem]}`,
    fix: `Send it in your own name after a review: POST /api/v1/drafts/${draft.id}/send with {"version": ${draft.version}}.`,
    extensions: {
      version: draft.version,
      send_status: 'rejected',
      send_error: REQUESTER_NOT_ALLOWED,
      requester_problem: found.problem,
    },
    commitsTransaction: true,
  });
}

const toNote = ({ note }: Decision): string | null =>
  note === undefined || note === null || note.trim() === '' ? null : storableText(note);

/** @throws AppError `not_found`, `permission_denied`, `conflict`. */
async function lockForDecision(
  transaction: Transaction,
  scope: Scope,
  draftId: string,
  { version }: Decision,
): Promise<{ draft: Draft; approver: string }> {
  const draft = await lockDraft(transaction.db, scope, draftId, withinReach(scope));
  const approver = await requireApprover(transaction.db, scope);
  if (draft.sendStatus !== 'pending_approval')
    throw new AppError('conflict', {
      detail: `The draft does not wait for an approval; its send_status is ${draft.sendStatus}.`,
      fix: 'Fetch the draft to see what happened to it: GET /api/v1/drafts/{id}.',
      extensions: { version: draft.version, send_status: draft.sendStatus },
    });
  if (draft.version !== version) throw versionConflict(draft);
  return { draft, approver };
}

interface ApprovedDraft {
  scope: Scope;
  draft: Draft;
  /** User id. */
  approver: string;
  decision: Decision;
}

async function sendOrSchedule(
  transaction: Transaction,
  options: SendDraftOptions,
  { scope, draft, approver, decision }: ApprovedDraft,
): Promise<MessageDetails | DraftDetails> {
  if (!draft.sendAt || draft.sendAt.getTime() <= Date.now()) {
    const sender = { ...scope, environmentId: draft.environmentId, actor: requesterOf(draft) };
    const sent = await sendDraft(transaction, draft, options, { scope: sender, isApproved: true });
    if ('needsApproval' in sent) throw new Error('An approved draft needs no approval');
    return sent;
  }
  Object.assign(draft, {
    approvedVersion: draft.version,
    decidedById: approver,
    decidedAt: new Date(),
    decisionNote: toNote(decision),
    approvalExpiresAt: null,
  } satisfies Partial<Draft>);
  scheduleSend(transaction, options.outbox, draft, draft.sendAt);
  const { db } = transaction;
  return { draft: await saveDraft(db, draft), attachments: await findDraftAttachments(db, draft.id) };
}

async function rememberRecipients(
  db: Db,
  { inboxId, organizationId, environmentId }: Draft,
  { approver, emails }: { approver: string; emails: string[] },
): Promise<void> {
  if (emails.length === 0) return;
  await db
    .insertInto('approved_recipients')
    .values(
      emails.toSorted().map((email) => ({
        id: newId('approvedRecipient'),
        org_id: organizationId,
        env_id: environmentId,
        inbox_id: inboxId,
        email,
        approved_by: approver,
        expires_at: sql`now() + make_interval(days => ${REMEMBERED_DAYS})`,
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(['inbox_id', 'email']).doUpdateSet((eb) => ({
        expires_at: eb.ref('excluded.expires_at'),
        approved_by: eb.ref('excluded.approved_by'),
      })),
    )
    .execute();
}

async function recordApproved(
  transaction: Transaction,
  { events }: Pick<SendDraftOptions, 'events'>,
  {
    scope,
    draft,
    approver,
    decision,
    result,
    remembered,
  }: ApprovedDraft & { result: MessageDetails | DraftDetails; remembered: string[] },
): Promise<void> {
  const messageId = 'message' in result ? result.message.id : null;
  const sendAt = messageId === null ? (draft.sendAt?.toISOString() ?? null) : null;
  const note = toNote(decision);
  await recordAudit(transaction.db, scope, {
    action: 'draft.approved',
    resourceType: 'draft',
    resourceId: draft.id,
    reason: note,
    details: {
      version: draft.version,
      inbox_id: draft.inboxId,
      message_id: messageId,
      send_at: sendAt,
      requested_by: requesterOf(draft).id,
      remembered_recipients: remembered.length,
    },
  });
  await events.record(transaction, {
    organizationId: draft.organizationId,
    environmentId: draft.environmentId,
    inboxId: draft.inboxId,
    type: 'draft.approved',
    aboutId: draft.id,
    data: {
      draft_id: draft.id,
      inbox_id: draft.inboxId,
      to_addresses: draft.to.map(({ email }) => email),
      subject: draft.subject ?? '',
      version: draft.version,
      message_id: messageId,
      send_at: sendAt,
      note,
      approved_by: approver,
      approved_at: new Date().toISOString(),
    },
  });
}
