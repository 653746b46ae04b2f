import type { Transaction } from '../../platform/database/database.ts';
import type { EventService } from '../events/event.service.ts';
import { REQUESTER_NOT_ALLOWED } from '../identity/requester.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { notifyRefusedAct } from '../notifications/notify-refused-act.ts';
import type { Draft } from './draft.entity.ts';
import type { SendProblem } from './draft-requester.ts';
import { createSystemScope, rejectDraft } from './reject-draft.ts';

export interface RefuseRequesterOptions {
  events: EventService;
  notifications: Pick<NotificationService, 'notifyMembers'>;
}

/**
 * Rejects a draft that would leave now, because its requester or approver has lost the permission. It keeps its content, so that
 * a person with the permission can send it again. Owners and admins are mailed.
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
