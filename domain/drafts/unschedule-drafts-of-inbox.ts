import { LockMode } from '@mikro-orm/core';
import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { DraftEntity } from './draft.entity.ts';
import { unscheduleSend } from './draft-schedule.ts';

/** Drafts unplanned in the transaction that deletes their inbox; what is scheduled beyond fails at its time. */
const MAX_DRAFTS = 1_000;

/** Takes the plans off an inbox's scheduled drafts, because the inbox is being deleted. */
export async function unscheduleDraftsOfInbox(
  transaction: Transaction,
  outbox: Outbox,
  inboxId: string,
): Promise<void> {
  const drafts = await transaction.em.find(
    DraftEntity,
    { inboxId, sendStatus: 'scheduled' },
    { limit: MAX_DRAFTS, lockMode: LockMode.PESSIMISTIC_WRITE },
  );
  for (const draft of drafts) unscheduleSend(transaction, outbox, draft, 'The inbox was deleted.');
}
