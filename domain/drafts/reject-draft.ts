import type { Transaction } from '../../platform/database/database.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { EventService } from '../events/event.service.ts';
import type { EventDataByType } from '../events/event-types.ts';
import { REQUESTER_NOT_ALLOWED } from '../identity/requester.ts';
import type { Scope } from '../identity/scope.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { notifyRefusedAct } from '../notifications/notify-refused-act.ts';
import type { Draft } from './draft.entity.ts';
import { requesterOf, type SendProblem } from './draft-requester.ts';
import { saveDraft } from './stored-draft.ts';

type RejectionKind = EventDataByType['draft.rejected']['decision'];

/** Start of `send_error` of a rejected draft. */
const SEND_ERRORS: Record<RejectionKind, string> = {
  rejected: 'approval_rejected',
  expired: 'approval_expired',
  canceled: 'approval_canceled',
  requester_not_allowed: REQUESTER_NOT_ALLOWED,
};

export interface Rejection {
  /** Who rejects the draft. */
  scope: Scope;
  decision: RejectionKind;
  note?: string | null;
  /** User id. */
  decidedById?: string | null;
  /** For the audit log. */
  details?: Record<string, unknown>;
}

/**
 * Rejects a locked draft, with an entry in the audit log and an event. It keeps its content, and can be changed and sent
 * again.
 *
 * @returns the draft as stored.
 */
export async function rejectDraft(
  transaction: Transaction,
  events: EventService,
  draft: Draft,
  { scope, decision, note = null, decidedById = null, details = {} }: Rejection,
): Promise<Draft> {
  const rejectedAt = new Date();
  const rejected = await saveDraft(transaction.db, {
    ...draft,
    sendStatus: 'rejected',
    sendAt: null,
    sendError: note === null ? SEND_ERRORS[decision] : `${SEND_ERRORS[decision]}: ${note}`,
    decidedById,
    decidedAt: rejectedAt,
    decisionNote: note,
    approvedVersion: null,
  });
  const { version, inboxId } = draft;
  await recordAudit(transaction.db, scope, {
    action: 'draft.rejected',
    resourceType: 'draft',
    resourceId: draft.id,
    reason: note,
    details: { version, inbox_id: inboxId, decision, requested_by: requesterOf(draft).id, ...details },
  });
  await events.record(transaction, {
    organizationId: draft.organizationId,
    environmentId: draft.environmentId,
    inboxId,
    type: 'draft.rejected',
    aboutId: draft.id,
    data: {
      draft_id: draft.id,
      inbox_id: inboxId,
      to_addresses: draft.to.map(({ email }) => email),
      subject: draft.subject ?? '',
      version,
      decision,
      note,
      rejected_by: decidedById,
      rejected_at: rejectedAt.toISOString(),
    },
  });
  return rejected;
}

/** Scope of changes to a draft that no request makes. */
export const createSystemScope = ({ id, organizationId, environmentId, inboxId }: Draft): Scope => ({
  organizationId,
  environmentId,
  environmentBound: true,
  inboxId,
  permissions: new Set(),
  actor: { kind: 'system', id },
  requestId: id,
});

export interface RefuseRequesterOptions {
  events: EventService;
  notifications: Pick<NotificationService, 'notifyMembers'>;
}

/**
 * Rejects a draft that is due, because its requester or approver has lost the permission. The draft keeps its content,
 * so that a person with the permission can send it again. Owners and admins get an email.
 */
export async function refuseRequester(
  transaction: Transaction,
  { events, notifications }: RefuseRequesterOptions,
  draft: Draft,
  { act, actor, problem }: SendProblem,
): Promise<void> {
  await rejectDraft(transaction, events, draft, {
    scope: createSystemScope(draft),
    decision: REQUESTER_NOT_ALLOWED,
    details: { refused: act, actor: actor?.id ?? null, problem },
  });
  await notifyRefusedAct(transaction, notifications, {
    organizationId: draft.organizationId,
    act,
    actor,
    problem,
    resourceId: draft.id,
  });
}
