import { type RawBuilder, sql } from 'kysely';
import { compileOnce } from '../../platform/database/compile-once.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import {
  returnInboxAllowance,
  type SharedDomainLimit,
  takeInboxAllowance,
  takeSharedDomainAllowance,
} from '../deliverability/daily-allowances.ts';
import { selectRecipientRestrictions } from '../deliverability/recipient-restrictions.ts';
import type { EventService } from '../events/event.service.ts';
import type { OrganizationStatus } from '../identity/authentication.ts';
import type { Scope, SendRefusal } from '../identity/scope.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { rejectReceivedLabels } from '../messages/hidden-labels.ts';
import { findDemandingAlarm, HAS_ALARM_IN_FORCE, type SendTarget } from '../messages/injection-alarms.ts';
import { toAddressKey } from '../mime/mail-address.ts';
import { DEFAULT_POLICIES } from '../policies/find-policies.ts';
import { countUnapprovedRecipients, selectRecipientViolations } from '../policies/recipient-policies.ts';
import { HAS_ABUSE_SUSPENSION } from '../suspensions/abuse-suspension.ts';
import { isSwitchedOff } from '../toggles/toggles.ts';
import { endOfDay } from '../usage/periods.ts';
import { findAnswerAddresses } from './answer-addresses.ts';
import { IS_UNSENT } from './held-sends.ts';
import type { OutboundContent } from './outbound-content.ts';
import { type RefusedSend, recordRefusedSend } from './send-events.ts';
import { findRefusal, type GateInput, type Refusal, toRefusalError } from './send-gate.ts';
import { type RepliedTo, senderAddress } from './sender-address.ts';

export interface SendToCheck {
  scope: Pick<Scope, 'sendRefusal' | 'actor'>;
  inbox: Inbox;
  content: Pick<OutboundContent, 'to' | 'cc' | 'bcc' | 'replyTo' | 'subject' | 'labels' | 'headers'>;
  /** The draft to send; unset if the request has the content. */
  draftId?: string | undefined;
  /** Null if the message starts a thread. */
  threadId?: string | null;
  /** The message to reply to. */
  parent?: RepliedTo | null;
  /** The message that it forwards. */
  forwardedMessageId?: string | null | undefined;
  /** A person has approved this content, so no further approval is needed. */
  isApproved?: boolean | undefined;
  /** The content already waits for an approval, and needs one even if the policy has changed in the meantime. */
  isWaiting?: boolean | undefined;
  /** Unset: the shared domain has no daily cap. */
  sharedDomainLimit?: SharedDomainLimit | undefined;
}

/** What happens with a message that passed the gate. */
export interface CheckedSend {
  /** A person must approve the message before it is sent. It does not count against the daily allowances yet. */
  needsApproval: boolean;
  /** The received message whose alarm demands the approval; null if a policy alone does, or none is needed. */
  alarmMessageId: string | null;
  /** Whether the header of the message declares it automatic (RFC 3834). */
  autoSubmitted: boolean;
}

/**
 * Runs the send gate for a request, and counts the message against the daily allowances. A refusal creates no message. Its
 * error commits the transaction, and with it the `message.rejected` event and its metric.
 *
 * @throws AppError the refusal, or `unprocessable` for a label that only the service sets.
 */
export async function checkSend(
  transaction: Transaction,
  events: EventService,
  {
    scope,
    inbox,
    content,
    draftId,
    threadId = null,
    parent = null,
    forwardedMessageId = null,
    isApproved = false,
    isWaiting = false,
    sharedDomainLimit,
  }: SendToCheck,
): Promise<CheckedSend> {
  const sender = senderAddress(inbox, parent);
  const send = { inbox, sender, content, draftId };
  if (scope.sendRefusal) throw await recordRefusedRequest(transaction, events, send, scope.sendRefusal);
  rejectReceivedLabels(content.labels);
  const recipients = toRecipientKeys(content);
  const { db } = transaction;
  const messageIds = forwardedMessageId === null ? [] : [forwardedMessageId];
  const answersTo = findAnswerAddresses(content);
  const gateInput = await readGateInput(db, inbox.id, {
    recipients,
    answersTo,
    threadId,
    messageIds,
    sender,
  });
  const needsApproval = !isApproved && (isWaiting || isForApproval(scope, gateInput));
  const refusal =
    findRefusal(gateInput) ??
    (needsApproval
      ? null
      : await findCapRefusal(db, inbox, {
          recipients: recipients.length,
          sharedDomainLimit,
          inboxCap: gateInput.policies.dailySendCapPerInbox,
        }));
  if (!refusal)
    return { ...toNeed(needsApproval, gateInput), autoSubmitted: isAutoSubmitted(scope, gateInput) };
  await recordRefusedSend(transaction, events, { ...send, refusal });
  throw toRefusalError(refusal);
}

/** A message that a person sends needs no approval. */
function isForApproval({ actor }: Pick<Scope, 'actor'>, { policies }: Pick<GateInput, 'policies'>): boolean {
  return actor.kind !== 'user' && (policies.unapprovedRecipients > 0 || policies.demandingAlarm !== null);
}

/** The approval that a send needs, and the alarm that demands it. */
export type ApprovalNeed = Pick<CheckedSend, 'needsApproval' | 'alarmMessageId'>;

const toNeed = (needsApproval: boolean, { policies }: Pick<GateInput, 'policies'>): ApprovalNeed => ({
  needsApproval,
  alarmMessageId: needsApproval ? policies.demandingAlarm : null,
});

/** Whether a person must approve the content of a scheduled send before it is sent. */
export async function findApprovalNeed(
  db: Db,
  {
    scope,
    inbox,
    content,
    target,
  }: Pick<SendToCheck, 'scope' | 'content'> & { inbox: Pick<Inbox, 'id'>; target: SendTarget },
): Promise<ApprovalNeed> {
  if (scope.actor.kind === 'user') return { needsApproval: false, alarmMessageId: null };
  const addresses = { recipients: toRecipientKeys(content), answersTo: findAnswerAddresses(content) };
  const gateInput = await readGateInput(db, inbox.id, { ...addresses, ...target });
  return toNeed(isForApproval(scope, gateInput), gateInput);
}

/** A person's own message is not automatic. */
function isAutoSubmitted(
  { actor }: Pick<Scope, 'actor'>,
  { policies }: Pick<GateInput, 'policies'>,
): boolean {
  return actor.kind !== 'user' && policies.autoSubmittedHeader;
}

/** Records a send that was refused before its use-case ran. The returned error commits the transaction. */
async function recordRefusedRequest(
  transaction: Transaction,
  events: EventService,
  send: Omit<RefusedSend, 'refusal'>,
  { reason, error }: SendRefusal,
): Promise<AppError> {
  const { code, detail, fix, headers, extensions } = error;
  await recordRefusedSend(transaction, events, { ...send, refusal: { reason, detail } });
  return new AppError(code, { detail, fix, headers, extensions, commitsTransaction: true });
}

/** Distinct normalized addresses. */
export function toRecipientKeys({ to, cc, bcc }: Pick<OutboundContent, 'to' | 'cc' | 'bcc'>): string[] {
  return [...new Set([...to, ...cc, ...bcc].map(({ email }) => toAddressKey(email) ?? email.toLowerCase()))];
}

const createSharedDomainRefusal = (now: Date): Refusal => ({
  check: 'shared_domain_cap',
  reason: 'rate_limited',
  detail: 'The organization has sent to as many recipients today as a new one may on the shared domain.',
  code: 'message_rejected',
  fix: 'Continue after resets_at: the number doubles after each day of sending with few bounces and complaints. Or send from a domain of your own (POST /api/v1/domains), which has no such cap.',
  resetsAt: endOfDay(now),
});

const createInboxCapRefusal = (cap: number, now: Date): Refusal => ({
  check: 'inbox_cap',
  reason: 'rate_limited',
  detail: `The inbox has sent as many messages today (UTC) as the organization allows: ${cap}.`,
  code: 'message_rejected',
  fix: 'Continue after resets_at, send from another inbox, or ask an owner or admin to raise daily_send_cap_per_inbox (PATCH /api/v1/org/policies).',
  policy: 'daily_send_cap_per_inbox',
  resetsAt: endOfDay(now),
});

interface DailyCaps {
  recipients: number;
  sharedDomainLimit: SharedDomainLimit | undefined;
  /** Null: the organization sets no cap. */
  inboxCap: number | null;
}

/** Counts the message against each daily allowance that applies, or against none. */
async function findCapRefusal(
  db: Db,
  inbox: Inbox,
  { recipients, sharedDomainLimit, inboxCap }: DailyCaps,
): Promise<Refusal | null> {
  const now = sharedDomainLimit?.now?.() ?? new Date();
  if (inboxCap !== null && (await takeInboxAllowance(db, inbox, inboxCap, now)) === 'exceeded')
    return createInboxCapRefusal(inboxCap, now);
  if (!sharedDomainLimit) return null;
  if ((await takeSharedDomainAllowance(db, inbox, recipients, sharedDomainLimit)) === 'taken') return null;
  // The refusal commits the transaction, and with it an allowance that was taken.
  if (inboxCap !== null) await returnInboxAllowance(db, inbox.id);
  return createSharedDomainRefusal(now);
}

/** The columns of the gate's statement that are the same on the request and at dispatch. */
const GATE_COLUMNS = [
  isSwitchedOff('sending').as('isSwitchedOff'),
  // A closed organization keeps its `status` for its recovery.
  sql<OrganizationStatus>`case when o.deleted_at is null then o.status else 'deleted' end`.as(
    'organizationStatus',
  ),
  HAS_ABUSE_SUSPENSION.as('suspendedForAbuse'),
  sql<boolean>`i.deleted_at is not null`.as('deleted'),
  sql<boolean>`coalesce(op.auto_submitted_header, ${DEFAULT_POLICIES.autoSubmittedHeader})`.as(
    'autoSubmittedHeader',
  ),
  sql<boolean | null>`t.send_paused_until > now()`.as('threadPaused'),
] as const;

/**
 * @param recipients a query for the distinct address keys of the recipients, as `email`.
 * @param sender the address that the message leaves from.
 */
const selectGateRow = (db: Db, recipients: RawBuilder<unknown>, sender: RawBuilder<unknown>) =>
  db
    .selectFrom('inboxes as i')
    .innerJoin('environments as e', 'e.id', 'i.env_id')
    .innerJoin('organizations as o', 'o.id', 'i.org_id')
    .leftJoin('organization_policies as op', 'op.org_id', 'i.org_id')
    .select(GATE_COLUMNS)
    .select([
      'e.status as environmentStatus',
      'i.status as inboxStatus',
      'i.send_paused as sendPaused',
      'i.send_paused_reason as sendPausedReason',
      'i.send_paused_by_kind as sendPausedByKind',
      'op.max_recipients_per_message as maxRecipientsPerMessage',
      'op.daily_send_cap_per_inbox as dailySendCapPerInbox',
      // No row: the shared domain.
      sql<boolean>`not exists (select from domains d where d.org_id = i.org_id
        and d.domain_name = split_part(${sender}, '@', 2) and d.verification_status <> 'verified')`.as(
        'domainVerified',
      ),
      selectRecipientRestrictions(recipients).as('recipients'),
      selectRecipientViolations(recipients).as('recipientViolations'),
    ]);

interface MessageToCheck extends Omit<SendTarget, 'messageIds'> {
  /** Distinct address keys. */
  recipients: string[];
  /** Address keys: where else it asks for answers. */
  answersTo?: string[];
  messageIds?: SendTarget['messageIds'];
  /** The address that it leaves from; null: the inbox's. */
  sender?: string | null;
}

/**
 * Reads everything the send gate needs in one statement, because the gate runs twice for every message. The statement
 * is prepared, because planning it takes ten times as long as running it. Only while an alarm of the inbox is in force, a
 * second one follows.
 *
 * @throws Error if the inbox does not exist.
 */
export async function readGateInput(
  db: Db,
  inboxId: string,
  { recipients, answersTo = [], threadId, messageIds = [], sender = null }: MessageToCheck,
): Promise<GateInput> {
  const [row] = await selectGateInput(db, {
    inboxId,
    sender,
    threadId,
    recipientCount: recipients.length,
    recipients: JSON.stringify(recipients),
  });
  if (!row) throw new Error(`Inbox ${inboxId} does not exist`);
  const addresses = [...recipients, ...answersTo];
  const demandingAlarm = row.hasAlarm
    ? await findDemandingAlarm(db, inboxId, { addresses, threadId, messageIds })
    : null;
  return toGateInput({ ...row, demandingAlarm });
}

interface GateQuery extends Pick<SendTarget, 'threadId'> {
  inboxId: string;
  sender: string | null;
  recipientCount: number;
  /** JSON of address keys. */
  recipients: string;
}

const selectGateInput = compileOnce(
  (db, { inboxId, sender, recipientCount, recipients, threadId }: GateQuery) => {
    const emails = selectEmails(recipients);
    return selectGateRow(db, emails, sql`coalesce(${sender}::text, i.email)`)
      .leftJoin('threads as t', (join) => join.on('t.id', '=', sql<string>`${threadId}`))
      .select([
        't.id as threadId',
        't.send_paused_until as threadPausedUntil',
        sql<number>`${recipientCount}::int`.as('recipientCount'),
        countUnapprovedRecipients(emails).as('unapprovedRecipients'),
        HAS_ALARM_IN_FORCE.as('hasAlarm'),
      ])
      .where('i.id', '=', inboxId)
      .modifyEnd(PREPARED);
  },
);

const selectEmails = (keys: string): RawBuilder<unknown> =>
  sql`select value as email from jsonb_array_elements_text(${keys}::jsonb)`;

// Stored recipients are ASCII, so the lower-case form is the key.
const UNSENT_RECIPIENTS = sql`select distinct lower(p.email) as email from message_recipients p
    where p.message_id = m.id and p.status in ('pending', 'deferred')`;

/**
 * Reads the gate input for the unsent recipients of a message, and whether the message itself allows a transmission.
 *
 * @returns null if the message does not exist.
 */
export async function readGateInputOfMessage(
  db: Db,
  messageId: string,
): Promise<(GateInput & { isUnsent: boolean }) | null> {
  const [row] = await selectGateInputOfMessage(db, { messageId });
  if (!row) return null;
  return {
    ...toGateInput({ ...row, unapprovedRecipients: 0, demandingAlarm: null }),
    isUnsent: row.isUnsent,
  };
}

const selectGateInputOfMessage = compileOnce((db, { messageId }: { messageId: string }) =>
  selectGateRow(db, UNSENT_RECIPIENTS, sql`m.from_email`)
    .innerJoin('messages as m', 'm.inbox_id', 'i.id')
    .innerJoin('threads as t', 't.id', 'm.thread_id')
    .select([
      't.id as threadId',
      't.send_paused_until as threadPausedUntil',
      sql<number>`(select count(*)::int from message_recipients p where p.message_id = m.id)`.as(
        'recipientCount',
      ),
      IS_UNSENT.as('isUnsent'),
    ])
    .where('m.id', '=', messageId)
    .modifyEnd(PREPARED),
);

type GateRow = Omit<GateInput, 'organization' | 'environment' | 'inbox' | 'policies' | 'thread'> &
  GateInput['policies'] &
  Pick<
    GateInput['inbox'],
    'sendPaused' | 'sendPausedReason' | 'sendPausedByKind' | 'deleted' | 'domainVerified'
  > & {
    organizationStatus: OrganizationStatus;
    environmentStatus: GateInput['environment']['status'];
    inboxStatus: GateInput['inbox']['status'];
    threadId: string | null;
    threadPaused: boolean | null;
    threadPausedUntil: Date | null;
  };

function toGateInput(row: GateRow): GateInput {
  return {
    isSwitchedOff: row.isSwitchedOff,
    organization: { status: row.organizationStatus },
    environment: { status: row.environmentStatus },
    suspendedForAbuse: row.suspendedForAbuse,
    inbox: {
      status: row.inboxStatus,
      sendPaused: row.sendPaused,
      sendPausedReason: row.sendPausedReason,
      sendPausedByKind: row.sendPausedByKind,
      deleted: row.deleted,
      domainVerified: row.domainVerified,
    },
    recipientCount: row.recipientCount,
    recipients: row.recipients,
    policies: {
      recipientViolations: row.recipientViolations,
      maxRecipientsPerMessage: row.maxRecipientsPerMessage,
      dailySendCapPerInbox: row.dailySendCapPerInbox,
      autoSubmittedHeader: row.autoSubmittedHeader,
      unapprovedRecipients: row.unapprovedRecipients,
      demandingAlarm: row.demandingAlarm,
    },
    thread:
      row.threadId === null
        ? null
        : { isPaused: row.threadPaused === true, pausedUntil: row.threadPausedUntil },
  };
}
