import type { Transaction } from '../../platform/database/database.ts';
import type { Row } from '../../platform/database/find-rows.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Attachment } from '../attachments/attachment.entity.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { rejectReceivedLabels } from '../messages/hidden-labels.ts';
import type { OutboundContent } from '../outbound/outbound-content.ts';
import { type Draft, DraftEntity } from './draft.entity.ts';
import { scheduleSend, unscheduleSend } from './draft-schedule.ts';

/** An undefined field is unchanged; null or an empty array clears it. */
export interface DraftFields extends Partial<OutboundContent> {
  /** Looked up only when the draft is sent. */
  threadId?: string | null;
  inReplyTo?: string | null;
  /** When to send automatically; a time in the past means immediately. */
  sendAt?: Date | null;
}

/** A draft with its files, in order. */
export interface DraftDetails {
  draft: Row<Draft>;
  attachments: Row<Attachment>[];
}

export interface NewDraft {
  inbox: Row<Inbox>;
  fields: DraftFields;
  /** Returns the rows of the draft's files, assigned to it. */
  attach(draftId: string): Promise<Attachment[]>;
}

export async function createDraft(
  transaction: Transaction,
  outbox: Outbox,
  { inbox, fields, attach }: NewDraft,
): Promise<DraftDetails> {
  const draft = transaction.em.create(DraftEntity, {
    id: newId('draft'),
    organizationId: inbox.organizationId,
    environmentId: inbox.environmentId,
    inboxId: inbox.id,
    to: [],
    cc: [],
    bcc: [],
    replyTo: [],
    headers: {},
    scheduleVersion: 0,
    version: 0,
  });
  transaction.em.persist(draft);
  changeDraft(transaction, outbox, draft, fields);
  return { draft, attachments: await attach(draft.id) };
}

export function changeDraft(
  transaction: Transaction,
  outbox: Outbox,
  draft: Draft,
  { sendAt, ...fields }: DraftFields,
): void {
  if (fields.labels) rejectReceivedLabels(fields.labels);
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) Object.assign(draft, { [name]: value });
  }
  draft.version += 1;
  if (sendAt === null) unscheduleSend(transaction, outbox, draft);
  else if (sendAt !== undefined) scheduleSend(transaction, outbox, draft, sendAt);
}
