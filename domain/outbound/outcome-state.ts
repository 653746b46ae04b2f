import { type RawBuilder, sql } from 'kysely';
import { compileOnce } from '../../platform/database/compile-once.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Message, MessageStatus, Recipient } from '../messages/message.entity.ts';
import { deriveStatus, isSettled, type SendState } from './message-status.ts';
import type { SendAttempt } from './send-attempt.entity.ts';
import { createEmptyChanges, type OutcomeChanges } from './send-events.ts';

/** The columns of a message that outcomes are applied to. */
export type OutcomeMessage = Pick<
  Message,
  | 'id'
  | 'organizationId'
  | 'environmentId'
  | 'inboxId'
  | 'threadId'
  | 'status'
  | 'statusDetail'
  | 'fromEmail'
  | 'subject'
  | 'rfcMessageId'
  | 'providerMessageId'
  | 'tracked'
  | 'createdAt'
  | 'queuedAt'
  | 'sentAt'
  | 'deliveredAt'
  | 'bouncedAt'
  | 'complainedAt'
>;
export type OutcomeRecipient = Pick<
  Recipient,
  'position' | 'field' | 'email' | 'status' | 'statusCode' | 'diagnosticCode' | 'sentAt' | 'updatedAt'
>;
export type OutcomeAttempt = Pick<
  SendAttempt,
  | 'position'
  | 'number'
  | 'state'
  | 'refusedScope'
  | 'statusCode'
  | 'response'
  | 'providerMessageId'
  | 'reportsDelivery'
  | 'simulated'
  | 'finishedAt'
  | 'recorded'
  | 'canceled'
> & {
  /** The state as it was read: the transmitting worker may still correct an `ambiguous` attempt without the lock. */
  stateRead: SendAttempt['state'];
};

/** A locked message with its recipients and attempts, while outcomes are applied to it. */
export interface OutcomeState {
  message: OutcomeMessage;
  recipients: OutcomeRecipient[];
  /** Attempts that are not recorded yet, and ambiguous ones. */
  attempts: OutcomeAttempt[];
  /** The attempts that this update records. */
  recorded: OutcomeAttempt[];
  changes: OutcomeChanges;
  now: Date;
}

const RECIPIENT_FIELDS = sql`'position', position, 'field', field, 'email', email, 'status', status, 'statusCode', status_code,
  'diagnosticCode', diagnostic_code, 'sentAt', sent_at, 'updatedAt', updated_at`;
const ATTEMPT_FIELDS = sql`'position', position, 'number', number, 'state', state, 'stateRead', state,
  'refusedScope', refused_scope, 'statusCode', status_code, 'response', response,
  'providerMessageId', provider_message_id, 'reportsDelivery', reports_delivery, 'simulated', simulated,
  'finishedAt', finished_at, 'recorded', recorded, 'canceled', canceled`;

/**
 * Locks the message until the transaction ends, and reads its recipients and attempts in a second statement, which
 * sees what the previous lock holder committed. Both leave in one write; PostgreSQL runs one after the other.
 *
 * @returns null if the message does not exist.
 */
export async function lockOutcomeState(db: Db, messageId: string): Promise<OutcomeState | null> {
  const [[message], parts] = await Promise.all([lockMessage(db, { messageId }), readParts(db, messageId)]);
  return message ? createOutcomeState(message, parts) : null;
}

const lockMessage = compileOnce((db, { messageId }: { messageId: string }) =>
  db
    .selectFrom('messages')
    .select([
      'id',
      'org_id as organizationId',
      'env_id as environmentId',
      'inbox_id as inboxId',
      'thread_id as threadId',
      'status',
      'status_detail as statusDetail',
      'from_email as fromEmail',
      'subject',
      'rfc_message_id as rfcMessageId',
      'provider_message_id as providerMessageId',
      'tracked',
      'created_at as createdAt',
      'queued_at as queuedAt',
      'sent_at as sentAt',
      'delivered_at as deliveredAt',
      'bounced_at as bouncedAt',
      'complained_at as complainedAt',
    ])
    .where('id', '=', messageId)
    .forUpdate()
    .modifyEnd(PREPARED),
);

/** Reads the recipients and attempts of a message that the transaction has locked. */
export async function readOutcomeState(db: Db, message: OutcomeMessage): Promise<OutcomeState> {
  return createOutcomeState(message, await readParts(db, message.id));
}

type OutcomeParts = Pick<OutcomeState, 'recipients' | 'attempts'>;

function createOutcomeState(message: OutcomeMessage, parts: OutcomeParts): OutcomeState {
  return {
    message: { ...message },
    ...parts,
    recorded: [],
    changes: createEmptyChanges(),
    now: new Date(),
  };
}

/**
 * Returns the unsettled recipients without an open attempt. An attempt is open while it is in progress, is not
 * recorded, or may have been accepted by the relay.
 */
export function findUnsentRecipients({ recipients, attempts }: OutcomeState): OutcomeRecipient[] {
  const open = new Set(
    attempts
      .filter(({ state, recorded }) => state === 'ambiguous' || (!recorded && state !== 'deferred'))
      .map(({ position }) => position),
  );
  return recipients.filter(({ status, position }) => !isSettled(status) && !open.has(position));
}

/** Rejects recipients that will not be transmitted to. */
export function rejectRecipients(
  { now }: OutcomeState,
  recipients: readonly OutcomeRecipient[],
  detail: string,
): void {
  for (const recipient of recipients)
    Object.assign(recipient, { status: 'rejected', diagnosticCode: detail, updatedAt: now } as const);
}

/** The status that results from the recipients of a message if no outcome is ambiguous. */
export const statusOfRecipients = ({ recipients }: Pick<OutcomeState, 'recipients'>): MessageStatus =>
  deriveStatus(
    recipients.map(({ status }) => status),
    false,
  );

/** Whether the send has not finished for some recipient. */
export const hasOpenRecipient = ({ recipients }: Pick<OutcomeState, 'recipients'>): boolean =>
  recipients.some(({ status }) => !isSettled(status));

/** Returns the numbers of the recipients for whom it is unknown whether the relay accepted the message. */
export function findAmbiguousPositions({ recipients, attempts }: OutcomeState): number[] {
  const uncertain = new Set(
    attempts.flatMap(({ state, position }) => (state === 'ambiguous' ? position : [])),
  );
  return recipients.flatMap(({ status, position }) =>
    uncertain.has(position) && !isSettled(status) ? position : [],
  );
}

/** Long enough for the ids of this service. */
const MAX_MESSAGE_ID_LEFT_CHARACTERS = 100;

export function toSendState(outcomeState: OutcomeState): SendState {
  const { status, rfcMessageId } = outcomeState.message;
  const ambiguous = findAmbiguousPositions(outcomeState);
  const open = outcomeState.recipients.filter((recipient) => !isSettled(recipient.status));
  const messageIdLeft = rfcMessageId?.split('@')[0]?.slice(0, MAX_MESSAGE_ID_LEFT_CHARACTERS);
  return {
    status,
    hasUnsent: open.length > ambiguous.length,
    ambiguous,
    ...(ambiguous.length > 0 && messageIdLeft ? { messageIdLeft } : {}),
  };
}

/** A row that PostgreSQL returns as JSON, in which times are text. */
type JsonRow<Row> = {
  [Name in keyof Row]: Row[Name] extends Date
    ? string
    : Row[Name] extends Date | null
      ? string | null
      : Row[Name];
};

const parseTime = (text: string | null): Date | null => (text === null ? null : new Date(text));

async function readParts(db: Db, messageId: string): Promise<OutcomeParts> {
  const [parts] = await selectParts(db, { messageId });
  const { recipients = [], attempts = [] } = parts ?? {};
  return {
    recipients: recipients.map((recipient) => ({
      ...recipient,
      sentAt: parseTime(recipient.sentAt),
      updatedAt: new Date(recipient.updatedAt),
    })),
    attempts: attempts.map((attempt) => ({ ...attempt, finishedAt: parseTime(attempt.finishedAt) })),
  };
}

const selectParts = compileOnce((db, { messageId }: { messageId: string }) =>
  db
    .selectNoFrom([
      sql<
        JsonRow<OutcomeRecipient>[]
      >`(select coalesce(jsonb_agg(jsonb_build_object(${RECIPIENT_FIELDS}) order by position), '[]')
        from message_recipients where message_id = ${messageId})`.as('recipients'),
      sql<
        JsonRow<OutcomeAttempt>[]
      >`(select coalesce(jsonb_agg(jsonb_build_object(${ATTEMPT_FIELDS}) order by position, number), '[]')
        from send_attempts where message_id = ${messageId} and (not recorded or state = 'ambiguous'))`.as(
        'attempts',
      ),
    ])
    .modifyEnd(PREPARED),
);

/** Writes the message, the changed recipients and the newly recorded attempts in one statement. */
export async function saveOutcomeState(db: Db, state: OutcomeState): Promise<void> {
  const { message, recorded, now } = state;
  await updateMessage(db, {
    ...message,
    updatedAt: now,
    changed: changedRecipients(state),
    recorded: JSON.stringify(recorded),
  });
}

type ChangedMessage = OutcomeMessage & {
  updatedAt: Date;
  /** JSON of {@link OutcomeRecipient}s. */
  changed: string;
  /** JSON of {@link OutcomeAttempt}s. */
  recorded: string;
};

const updateMessage = compileOnce((db, { id, changed, recorded, ...message }: ChangedMessage) =>
  withChangedRecipients(db, { id, changed })
    .with('recorded', (query) =>
      query
        .updateTable('send_attempts as a')
        .from(
          sql<OutcomeAttempt>`jsonb_to_recordset(${recorded}::jsonb)`.as<'v'>(
            sql`v(position int, number int, state text, "stateRead" text, "finishedAt" timestamptz)`,
          ),
        )
        .set(({ ref }) => ({ state: ref('v.state'), finished_at: ref('v.finishedAt'), recorded: true }))
        .where('a.message_id', '=', id)
        .whereRef('a.position', '=', 'v.position')
        .whereRef('a.number', '=', 'v.number')
        .whereRef('a.state', '=', 'v.stateRead'),
    )
    .updateTable('messages')
    .set({
      status: message.status,
      status_detail: message.statusDetail,
      provider_message_id: message.providerMessageId,
      tracked: message.tracked,
      updated_at: message.updatedAt,
      sent_at: firstTime(sql`sent_at`, message.sentAt),
      delivered_at: firstTime(sql`delivered_at`, message.deliveredAt),
      bounced_at: firstTime(sql`bounced_at`, message.bouncedAt),
      complained_at: firstTime(sql`complained_at`, message.complainedAt),
    })
    .where('id', '=', id)
    .modifyEnd(PREPARED),
);

/**
 * Writes the status of the message and the changed recipients in one statement. Does not write attempts, because the
 * API may not.
 */
export async function saveStatus(db: Db, state: OutcomeState): Promise<void> {
  const { id, status, statusDetail, bouncedAt } = state.message;
  await withChangedRecipients(db, { id, changed: changedRecipients(state) })
    .updateTable('messages')
    .set({
      status,
      status_detail: statusDetail,
      bounced_at: firstTime(sql`bounced_at`, bouncedAt),
      updated_at: state.now,
    })
    .where('id', '=', id)
    .execute();
}

const firstTime = (column: RawBuilder<unknown>, time: Date | null) =>
  sql<Date | null>`coalesce(${column}, ${time}::timestamptz)`;

const changedRecipients = ({ recipients, now }: OutcomeState): string =>
  JSON.stringify(recipients.filter(({ updatedAt }) => updatedAt === now));

function withChangedRecipients(db: Db, { id, changed }: Pick<ChangedMessage, 'id' | 'changed'>) {
  return db.with('changed', (query) =>
    query
      .updateTable('message_recipients as r')
      .from(
        sql<OutcomeRecipient>`jsonb_to_recordset(${changed}::jsonb)`.as<'v'>(
          sql`v(position int, status text, "statusCode" text, "diagnosticCode" text, "sentAt" timestamptz, "updatedAt" timestamptz)`,
        ),
      )
      .set(({ ref }) => ({
        status: ref('v.status'),
        status_code: ref('v.statusCode'),
        diagnostic_code: ref('v.diagnosticCode'),
        sent_at: ref('v.sentAt'),
        updated_at: ref('v.updatedAt'),
      }))
      .where('r.message_id', '=', id)
      .whereRef('r.position', '=', 'v.position'),
  );
}
