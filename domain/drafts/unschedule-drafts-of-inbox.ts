import { LockMode } from '@mikro-orm/core';
import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { DraftEntity } from './draft.entity.ts';
import { voidApproval } from './draft-approval.ts';
import { unscheduleSend } from './draft-schedule.ts';

/** Limits the work in the transaction that deletes the inbox. Any further scheduled drafts fail when they are due. */
const MAX_DRAFTS = 1_000;

/** Unschedules the drafts of an inbox that is being deleted, and voids the approvals that they wait for. */
export async function unscheduleDraftsOfInbox(
  transaction: Transaction,
  outbox: Outbox,
  inboxId: string,
): Promise<void> {
  const drafts = await transaction.em.find(
    DraftEntity,
    { inboxId, sendStatus: { $in: ['scheduled', 'pending_approval'] } },
    { limit: MAX_DRAFTS, lockMode: LockMode.PESSIMISTIC_WRITE },
  );
  for (const draft of drafts) {
    voidApproval(transaction, outbox, draft);
    unscheduleSend(transaction, outbox, draft, 'The inbox was deleted.');
  }
}
