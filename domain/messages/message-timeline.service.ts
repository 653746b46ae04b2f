import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import { idFromBytes, idToBytes } from '../../platform/ids.ts';
import { columnsWithin, type Scope } from '../identity/scope.ts';
import { describeRecipientFailure } from './delivery-failure.ts';
import type { Message } from './message.entity.ts';
import { findRecipients, type MessageDetails } from './message-details.ts';

export const STEP_TYPES = [
  'received',
  'parsed',
  'accepted',
  'queued',
  'attempt',
  'sent',
  'delivered',
  'bounced',
  'complained',
  'suppressed',
  'rejected',
  'canceled',
  'failed',
  'needs_attention',
] as const;
export type StepType = (typeof STEP_TYPES)[number];

export const ATTEMPT_STATES = ['attempting', 'accepted', 'deferred', 'refused', 'ambiguous'] as const;

/** Something that happened to a message. */
export interface MessageStep {
  type: StepType;
  at: Date;
  /** Null if it concerns the whole message. */
  recipient: string | null;
  /** Only for an SMTP transaction with the relay. */
  attempt: { number: number; state: (typeof ATTEMPT_STATES)[number]; finishedAt: Date | null } | null;
  /** Enhanced status code (RFC 3463). */
  statusCode: string | null;
  /** The response of the relay, the reason of a failure, or where a received message came from. */
  detail: string | null;
  /** What to do about a failure. */
  next: string | null;
}

export interface MessageTimeline {
  messageId: string;
  /** Oldest first. */
  steps: MessageStep[];
  /** The oldest attempts are missing. */
  isTruncated: boolean;
}

/** A message that is retried for days has fewer attempts for each recipient than this. */
const LISTED_ATTEMPTS = 500;

export type MessageTimelineService = ReturnType<typeof createMessageTimelineService>;

export function createMessageTimelineService({ database }: { database: Database }) {
  return {
    /** What happened to a message since it was accepted or received. @throws AppError `not_found`. */
    get: (scope: Scope, messageId: string): Promise<MessageTimeline> =>
      database.read(scope, async ({ db }) => {
        const message = await db
          .selectFrom('messages')
          .select([
            'id',
            'direction',
            'status',
            'status_detail as statusDetail',
            'created_at as createdAt',
            'updated_at as updatedAt',
            'queued_at as queuedAt',
            'delivered_at as deliveredAt',
            'bounced_at as bouncedAt',
            'complained_at as complainedAt',
            'received_at as receivedAt',
          ])
          .where('id', '=', messageId)
          .where((eb) => eb.and(columnsWithin(scope)))
          .executeTakeFirst();
        if (!message) throw notFound('message', messageId);
        if (message.direction === 'inbound')
          return {
            messageId,
            steps: listArrival(message, await findReceipt(db, message)),
            isTruncated: false,
          };
        const [recipients, attempts] = await Promise.all([
          findRecipients(db, [messageId]),
          findAttempts(db, messageId),
        ]);
        const steps = [
          ...listQueueing(message),
          ...attempts.slice(0, LISTED_ATTEMPTS).map((attempt) => toAttemptStep(attempt, recipients)),
          ...recipients.flatMap((recipient) => listOutcomes(recipient, message)),
          ...listLostOutcomes(message, recipients),
          ...listStop(message),
        ];
        return { messageId, steps: steps.sort(byTime), isTruncated: attempts.length > LISTED_ATTEMPTS };
      }),
  };
}

type TimedMessage = Pick<
  Message,
  | 'id'
  | 'direction'
  | 'status'
  | 'statusDetail'
  | 'createdAt'
  | 'updatedAt'
  | 'queuedAt'
  | 'deliveredAt'
  | 'bouncedAt'
  | 'complainedAt'
  | 'receivedAt'
>;
type Recipients = MessageDetails['recipients'];
type Receipt = Awaited<ReturnType<typeof findReceipt>>;
type Attempt = Awaited<ReturnType<typeof findAttempts>>[number];

/** A received message has the same UUID as its receipt. */
const findReceipt = (db: Db, { id }: Pick<Message, 'id'>) =>
  db
    .selectFrom('inbound_receipts')
    .select([
      'received_at as receivedAt',
      'processed_at as processedAt',
      'mail_from as mailFrom',
      'client_ip as clientIp',
      'helo',
      'tls',
    ])
    .where('id', '=', idFromBytes('receipt', idToBytes(id)))
    .executeTakeFirst();

/** The newest first, one more than are shown. */
const findAttempts = (db: Db, messageId: string) =>
  db
    .selectFrom('send_attempts')
    .select([
      'position',
      'number',
      'state',
      'status_code as statusCode',
      'response',
      'started_at as startedAt',
      'finished_at as finishedAt',
    ])
    .where('message_id', '=', messageId)
    .orderBy('started_at', 'desc')
    .orderBy('position', 'desc')
    .limit(LISTED_ATTEMPTS + 1)
    .execute();

const NOTHING_MORE = { recipient: null, attempt: null, statusCode: null, detail: null, next: null };

/** Steps of one moment stand in the order in which they happen. */
const byTime = (a: MessageStep, b: MessageStep) =>
  a.at.getTime() - b.at.getTime() || STEP_TYPES.indexOf(a.type) - STEP_TYPES.indexOf(b.type);

function listArrival({ receivedAt, createdAt }: TimedMessage, receipt: Receipt): MessageStep[] {
  const arrivedAt = receipt?.receivedAt ?? receivedAt ?? createdAt;
  const parsedAt = receipt?.processedAt ?? createdAt;
  return [
    { ...NOTHING_MORE, type: 'received', at: arrivedAt, detail: receipt ? describeOrigin(receipt) : null },
    { ...NOTHING_MORE, type: 'parsed', at: new Date(Math.max(parsedAt.getTime(), arrivedAt.getTime())) },
  ];
}

function describeOrigin({ mailFrom, clientIp, helo, tls }: NonNullable<Receipt>): string {
  const sender = `Envelope sender <${mailFrom}>`;
  if (clientIp === '') return `${sender}.`;
  return `${sender}, from ${helo ? `${helo} ` : ''}[${clientIp}] ${tls ? 'with' : 'without'} TLS.`;
}

const listQueueing = ({ createdAt, queuedAt }: TimedMessage): MessageStep[] => [
  { ...NOTHING_MORE, type: 'accepted', at: createdAt },
  ...(queuedAt ? [{ ...NOTHING_MORE, type: 'queued' as const, at: queuedAt }] : []),
];

const toAttemptStep = (attempt: Attempt, recipients: Recipients): MessageStep => ({
  type: 'attempt',
  at: attempt.startedAt,
  recipient: recipients.find(({ position }) => position === attempt.position)?.email ?? null,
  attempt: { number: attempt.number, state: attempt.state, finishedAt: attempt.finishedAt },
  statusCode: attempt.statusCode,
  detail: attempt.response,
  next: null,
});

function listOutcomes(recipient: Recipients[number], { status: messageStatus }: TimedMessage): MessageStep[] {
  const { email, status, statusCode, diagnosticCode, sentAt, updatedAt } = recipient;
  const about = { ...NOTHING_MORE, recipient: email };
  const sent = sentAt ? [{ ...about, type: 'sent' as const, at: sentAt }] : [];
  if (status === 'pending' || status === 'deferred' || status === 'sent') return sent;
  const isCanceled = status === 'rejected' && messageStatus === 'canceled';
  return [
    ...sent,
    {
      ...about,
      type: isCanceled ? 'canceled' : status,
      at: updatedAt,
      statusCode,
      detail: diagnosticCode,
      next: isCanceled ? null : (describeRecipientFailure(recipient)?.next ?? null),
    },
  ];
}

/** Outcomes that a later one of the same recipient has replaced: a message that was delivered, and bounced after that. */
function listLostOutcomes(message: TimedMessage, recipients: Recipients): MessageStep[] {
  const times = [
    ['delivered', message.deliveredAt],
    ['bounced', message.bouncedAt],
    ['complained', message.complainedAt],
  ] as const;
  return times.flatMap(([type, at]) => {
    const isKept = recipients.some(({ status }) => status === type);
    const isSuppression = type === 'bounced' && recipients.some(({ status }) => status === 'suppressed');
    if (at === null || isKept || isSuppression) return [];
    const [only, ...others] = recipients;
    return [{ ...NOTHING_MORE, type, at, recipient: others.length === 0 ? (only?.email ?? null) : null }];
  });
}

/** Of a message that waits for an operator, or that can never be sent. */
function listStop({ status, statusDetail, updatedAt }: TimedMessage): MessageStep[] {
  if (status !== 'failed' && status !== 'needs_attention') return [];
  return [{ ...NOTHING_MORE, type: status, at: updatedAt, detail: statusDetail }];
}
