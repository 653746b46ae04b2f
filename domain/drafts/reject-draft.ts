import type { Transaction } from '../../platform/database/database.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { EventService } from '../events/event.service.ts';
import type { EventDataByType } from '../events/event-types.ts';
import { REQUESTER_NOT_ALLOWED } from '../identity/requester.ts';
import type { Scope } from '../identity/scope.ts';
import type { Draft } from './draft.entity.ts';
import { requesterOf } from './draft-requester.ts';

type RejectionKind = EventDataByType['draft.rejected']['decision'];

/** Start of `send_error` of a rejected draft. */
const SEND_ERRORS: Record<RejectionKind, string> = {
  rejected: 'approval_rejected',
  expired: 'approval_expired',
  canceled: 'approval_canceled',
  requester_not_allowed: REQUESTER_NOT_ALLOWED,
};

/** Marks a draft as rejected. It keeps its content, and can be changed and sent again. */
export function rejectDraft(
  draft: Draft,
  {
    decision,
    note,
    decidedById,
  }: { decision: RejectionKind; note: string | null; decidedById: string | null },
): void {
  Object.assign(draft, {
    sendStatus: 'rejected',
    sendAt: null,
    sendError: note === null ? SEND_ERRORS[decision] : `${SEND_ERRORS[decision]}: ${note}`,
    decidedById,
    decidedAt: new Date(),
    decisionNote: note,
    approvedVersion: null,
  } satisfies Partial<Draft>);
}

/** Records the audit entry and the event of a rejected draft. */
export async function recordDraftRejected(
  transaction: Transaction,
  events: EventService,
  scope: Scope,
  draft: Draft,
  { decision, details = {} }: { decision: RejectionKind; details?: Record<string, unknown> },
): Promise<void> {
  const { decisionNote: note, version, inboxId } = draft;
  await recordAudit(transaction.em, scope, {
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
      rejected_by: draft.decidedById,
      rejected_at: (draft.decidedAt ?? new Date()).toISOString(),
    },
  });
}

/** For what happens to a draft without a request. */
export const createSystemScope = ({ id, organizationId, environmentId, inboxId }: Draft): Scope => ({
  organizationId,
  environmentId,
  environmentBound: true,
  inboxId,
  permissions: new Set(),
  actor: { kind: 'system', id },
  requestId: id,
});
