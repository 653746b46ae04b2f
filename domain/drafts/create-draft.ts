import type { Transaction } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import { saveAttachments } from '../attachments/attach-files.ts';
import type { Attachment } from '../attachments/attachment.entity.ts';
import type { Scope } from '../identity/scope.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { rejectReceivedLabels } from '../messages/hidden-labels.ts';
import type { OutboundContent, Submission } from '../outbound/outbound-content.ts';
import type { DraftCreation } from '../outbound/send.service.ts';
import type { Draft } from './draft.entity.ts';
import { type ApprovalOptions, requestApproval } from './draft-approval.ts';
import type { DraftDetails } from './find-draft.ts';
import { planSend } from './plan-send.ts';
import { insertDraft, saveDraft } from './stored-draft.ts';

/** An undefined field is unchanged; null or an empty array clears it. */
export interface DraftFields extends Partial<OutboundContent> {
  /** Looked up only when the draft is sent. */
  threadId?: string | null;
  inReplyTo?: string | null;
  forwardedMessageId?: string | null;
  /** When to send automatically; a time in the past means immediately. */
  sendAt?: Date | null;
}

export interface NewDraft {
  scope: Scope;
  inbox: Inbox;
  fields: DraftFields;
  submission?: Submission;
  /** Returns the rows of the draft's files, assigned to it. */
  attach(draftId: string): Promise<Attachment[]>;
}

/** Creates a draft. With `sendAt` it is scheduled, or waits for approval first. */
export async function createDraft(
  transaction: Transaction,
  options: ApprovalOptions,
  newDraft: NewDraft,
): Promise<DraftDetails> {
  const { scope, inbox, fields } = newDraft;
  const { draft, attachments } = await insertWithFiles(transaction, newDraft);
  const { sendAt } = fields;
  if (!sendAt) return { draft, attachments };
  await planSend(transaction, options, draft, { scope, inbox, sendAt, attachments });
  return { draft: await saveDraft(transaction.db, draft), attachments };
}

/** Turns sends into drafts, for the rooms that send. */
export function createDraftCreation(options: ApprovalOptions): DraftCreation<DraftDetails> {
  return {
    schedule: (transaction, pending) => createDraft(transaction, options, pending),
    async requestApproval(transaction, { alarmMessageId, ...pending }) {
      const { scope, inbox, fields } = pending;
      const { draft: inserted, attachments } = await insertWithFiles(transaction, pending);
      const draft = { ...inserted, sendAt: fields.sendAt };
      await requestApproval(transaction, options, draft, {
        inbox,
        actor: scope.actor,
        attachmentCount: attachments.length,
        alarmMessageId,
      });
      return { draft: await saveDraft(transaction.db, draft), attachments };
    },
  };
}

async function insertWithFiles(
  { db }: Transaction,
  { scope: { actor }, inbox, fields, submission, attach }: NewDraft,
): Promise<{ draft: Draft; attachments: Attachment[] }> {
  const now = new Date();
  const draft: Draft = {
    ...EMPTY,
    id: newId('draft'),
    organizationId: inbox.organizationId,
    environmentId: inbox.environmentId,
    inboxId: inbox.id,
    submission: submission ?? null,
    createdByKind: actor.kind,
    createdById: actor.id,
    lastEditedByKind: actor.kind,
    lastEditedById: actor.id,
    createdAt: now,
    updatedAt: now,
  };
  setFields(draft, fields);
  const inserted = await insertDraft(db, draft);
  const attachments = await attach(draft.id);
  await saveAttachments(db, attachments);
  return { draft: inserted, attachments };
}

/** A draft without content that is not scheduled and does not wait. Its state is the columns' defaults, which `insertDraft` relies on. */
const EMPTY = {
  threadId: null,
  inReplyTo: null,
  forwardedMessageId: null,
  subject: null,
  to: [],
  cc: [],
  bcc: [],
  replyTo: [],
  textBody: null,
  htmlBody: null,
  labels: [],
  headers: {},
  unsubscribe: false,
  sendAt: null,
  sendStatus: 'draft' as const,
  sendError: null,
  scheduleVersion: 0,
  requestedByKind: null,
  requestedById: null,
  approvalRequestedAt: null,
  approvalExpiresAt: null,
  approvalGeneration: 0,
  approvalAnnounced: false,
  approvalReview: null,
  approvedVersion: null,
  decidedById: null,
  decidedAt: null,
  decisionNote: null,
  version: 0,
  reconciledAt: null,
} satisfies Partial<Draft>;

/** Sets the content of a draft, which creates a new version. Returns the API names of the fields that changed. */
export function setFields(
  draft: Partial<Draft> & Pick<Draft, 'version'>,
  { sendAt: _sendAt, ...content }: DraftFields,
): string[] {
  if (content.labels) rejectReceivedLabels(content.labels);
  const changed: string[] = [];
  for (const [name, value] of Object.entries(content)) {
    if (value === undefined) continue;
    if (JSON.stringify(draft[name as keyof Draft] ?? null) !== JSON.stringify(value))
      changed.push(toApiName(name));
    Object.assign(draft, { [name]: value });
  }
  draft.version += 1;
  return changed;
}

const toApiName = (property: string): string =>
  property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
