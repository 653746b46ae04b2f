import { sql } from 'kysely';
import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  APPROVAL_VOIDED,
  AWAIT_APPROVAL,
  awaitApprovalWorkflowId,
} from '../../workflows/drafts/await-approval.contract.ts';
import { OUTBOUND_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { EventService } from '../events/event.service.ts';
import type { Actor } from '../identity/scope.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { toRecipientKeys } from '../outbound/check-send.ts';
import { buildEnvelope, envelopeContent } from '../outbound/outbound-content.ts';
import { isOwnAddress } from '../policies/recipient-policies.ts';
import { extendHistory } from './approval-history.ts';
import type { ApprovalReview, ApprovalSignal, Draft } from './draft.entity.ts';
import { signalUnscheduled } from './draft-schedule.ts';
import { findDraftSender } from './reply-parent.ts';

export interface ApprovalOptions {
  outbox: Outbox;
  events: EventService;
  /** How long a draft waits for a decision. */
  approvalMs: number;
}

export interface ApprovalRequest {
  inbox: Pick<Inbox, 'email' | 'aliases'>;
  /** Who asks to send the draft. */
  actor: Actor;
  attachmentCount: number;
  /** The received message whose alarm demands the approval; null if a policy does. Undefined: as before. */
  alarmMessageId?: string | null | undefined;
  /** API names of the fields that changed while the draft waited. */
  changedFields?: string[];
}

const MAX_CHANGES = 20;

/**
 * Requests approval of the draft's current version and announces the request. An earlier request for the draft becomes
 * void. A `sendAt` is kept: the draft is scheduled once it is approved.
 */
export async function requestApproval(
  transaction: Transaction,
  { outbox, events, approvalMs }: ApprovalOptions,
  draft: Draft,
  { inbox, actor, attachmentCount, alarmMessageId, changedFields = [] }: ApprovalRequest,
): Promise<void> {
  const now = new Date();
  const earlier = draft.sendStatus === 'pending_approval' ? draft.approvalReview : null;
  if (draft.sendStatus === 'scheduled') signalUnscheduled(transaction, outbox, draft);
  voidApproval(transaction, outbox, draft);
  const changes = [
    ...(earlier?.changes ?? []),
    ...(changedFields.length > 0
      ? [{ version: draft.version, changed_at: now.toISOString(), fields: changedFields }]
      : []),
  ].slice(-MAX_CHANGES);
  const expiresAt = new Date(now.getTime() + approvalMs);
  Object.assign(draft, {
    sendStatus: 'pending_approval',
    sendError: null,
    requestedByKind: actor.kind,
    requestedById: actor.id,
    approvalRequestedAt: now,
    approvalExpiresAt: expiresAt,
    approvalGeneration: draft.approvalGeneration + 1,
    approvalAnnounced: false,
    approvalReview: await buildReview(transaction.db, draft, {
      changes,
      attachmentCount,
      alarmMessageId: alarmMessageId ?? earlier?.alarm_message_id ?? null,
    }),
    approvalHistory: await extendHistory(transaction.db, draft, { isWaiting: earlier !== null }),
    decidedById: null,
    decidedAt: null,
    decisionNote: null,
  } satisfies Partial<Draft>);
  outbox.enqueue(transaction, draft.organizationId, { start: buildApprovalStart(draft, expiresAt) });
  await events.record(transaction, {
    organizationId: draft.organizationId,
    environmentId: draft.environmentId,
    inboxId: draft.inboxId,
    type: 'draft.pending_approval',
    aboutId: draft.id,
    data: {
      draft_id: draft.id,
      inbox_id: draft.inboxId,
      version: draft.version,
      from_address: await findDraftSender(transaction.db, draft, inbox),
      to_addresses: draft.to.map(({ email }) => email),
      subject: draft.subject ?? '',
      requested_at: now.toISOString(),
      expires_at: expiresAt.toISOString(),
    },
  });
}

/** Ends the run of the request if the draft waits for approval. The caller changes the status. */
export function voidApproval(transaction: Transaction, outbox: Outbox, draft: Draft): void {
  if (draft.sendStatus === 'pending_approval') signalApproval(transaction, outbox, draft, APPROVAL_VOIDED);
}

export function signalApproval(
  transaction: Transaction,
  outbox: Outbox,
  draft: Draft,
  signalName: string,
): void {
  // The run may not have started yet.
  const start = buildApprovalStart(draft, draft.approvalExpiresAt ?? new Date());
  outbox.enqueue(transaction, draft.organizationId, {
    start,
    signal: { workflowId: start.workflowId, signalName, args: [] },
  });
}

/** Builds the command that starts the run of a request. The reconciler uses it to restart a lost run. */
export function buildApprovalStart(
  draft: Pick<Draft, 'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'approvalGeneration'>,
  expiresAt: Date,
): StartCommand {
  return {
    workflowType: AWAIT_APPROVAL,
    workflowId: awaitApprovalWorkflowId(draft.id, draft.approvalGeneration),
    taskQueue: OUTBOUND_QUEUE,
    priority: { priorityKey: PRIORITY.notification, fairnessKey: draft.organizationId },
    input: { draftId: draft.id, generation: draft.approvalGeneration, expiresAt: expiresAt.toISOString() },
    searchAttributes: {
      OrgId: draft.organizationId,
      EnvId: draft.environmentId,
      InboxId: draft.inboxId,
      ResourceId: draft.id,
      Stage: 'pending_approval',
    },
    summary: `Approval of draft ${draft.id} until ${expiresAt.toISOString()}`,
  };
}

/** Distinct normalized addresses to which the draft would be sent. */
export function recipientKeysOf(draft: Pick<Draft, 'to' | 'cc' | 'bcc' | 'submission'>): string[] {
  return toRecipientKeys(draft.submission ? envelopeContent(draft as Draft, draft.submission) : draft);
}

/** How many of the inbox's newest messages count as its recent correspondence. */
const RECENT_MESSAGES = 1_000;

async function buildReview(
  db: Db,
  draft: Draft,
  {
    changes,
    attachmentCount,
    alarmMessageId,
  }: { changes: ApprovalReview['changes']; attachmentCount: number; alarmMessageId: string | null },
): Promise<ApprovalReview> {
  if (!draft.submission) buildEnvelope(draft);
  const recipients = await findRecipients(db, draft.inboxId, recipientKeysOf(draft));
  const signals: [ApprovalSignal, boolean][] = [
    ['external_recipient', recipients.some(({ external }) => external)],
    ['first_contact', recipients.some(({ known }) => !known)],
    ['attachments', attachmentCount > 0],
    ['injection_alarm', alarmMessageId !== null],
    ['changed', changes.length > 0],
  ];
  return {
    signals: signals.flatMap(([signal, applies]) => (applies ? [signal] : [])),
    recipients: recipients.map(({ email, external, known }) => ({
      email,
      external,
      first_contact: !known,
    })),
    alarm_message_id: alarmMessageId,
    changes,
  };
}

interface ReviewedRecipient {
  email: string;
  external: boolean;
  known: boolean;
}

/** Whether each address is outside the organization, and whether the inbox has exchanged messages with it recently. */
function findRecipients(db: Db, inboxId: string, emails: string[]): Promise<ReviewedRecipient[]> {
  return db
    .with(
      (cte) => cte('recent').materialized(),
      (cte) =>
        cte
          .selectFrom('messages')
          .select(['id', 'direction', 'from_email'])
          .where('inbox_id', '=', inboxId)
          .orderBy('id', 'desc')
          .limit(RECENT_MESSAGES),
    )
    .with(
      (cte) => cte('correspondents').materialized(),
      (cte) =>
        cte
          .selectFrom('recent')
          .select(sql<string>`lower(from_email)`.as('email'))
          .where('direction', '=', 'inbound')
          .union(
            cte
              .selectFrom('recent')
              .innerJoin('message_recipients as r', 'r.message_id', 'recent.id')
              .select(sql<string>`lower(r.email)`.as('email'))
              .where('recent.direction', '=', 'outbound'),
          ),
    )
    .selectFrom(
      sql<{ email: string; position: number }>`unnest(${emails}::text[]) with ordinality`.as<'k'>(
        sql`k(email, position)`,
      ),
    )
    .innerJoin('inboxes as i', (join) => join.on('i.id', '=', inboxId))
    .select((eb) => [
      'k.email',
      sql<boolean>`not ${isOwnAddress(sql.ref<string>('k.email'))}`.as('external'),
      eb('k.email', 'in', eb.selectFrom('correspondents').select('correspondents.email'))
        .$castTo<boolean>()
        .as('known'),
    ])
    .orderBy('k.position')
    .execute();
}
