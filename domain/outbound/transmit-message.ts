import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { compileOnce } from '../../platform/database/compile-once.ts';
import type { Database } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import { storableText } from '../../platform/database/storable.ts';
import { IS_RESTORE_PENDING, restorePending } from '../../platform/installation/pending-restore.ts';
import type {
  ImmediateReport,
  MailTransport,
  TransmissionResult,
} from '../../platform/mail-transport/mail-transport.ts';
import type { SimulatorTransport } from '../../platform/mail-transport/simulator-transport.ts';
import type { ReturnPaths } from '../../platform/return-path.ts';
import type { Storage } from '../../platform/storage.ts';
import { withRecipientToken } from '../delivery-reports/report-token.ts';
import type { DkimKeys } from '../domains/dkim-keys.ts';
import type { Message, MessageStatus, Recipient } from '../messages/message.entity.ts';
import { IS_UNSENT } from './held-sends.ts';
import { isSettled } from './message-status.ts';
import { abandonAttempts, type OutcomeService, recordSend } from './outcome.service.ts';
import type { SendAttempt, SendAttemptState, SimulatedOutcome } from './send-attempt.entity.ts';
import {
  createRawSource,
  ensureMimeStored,
  type OutgoingMessage,
  type StoredMime,
  saveRawKey,
  withRawKey,
} from './stored-mime.ts';

export interface TransmissionOptions {
  database: Database;
  storage: Pick<Storage, 'putBytes' | 'putStream' | 'getStream' | 'getBytes'>;
  /** Sends the messages of production environments. */
  mailTransport: MailTransport;
  /** Handles the messages of sandbox environments and those to the simulator's addresses. It sends nothing. */
  simulator: SimulatorTransport;
  returnPaths: ReturnPaths;
  dkimKeys: DkimKeys;
  outcomes: OutcomeService;
}

export interface TransmissionStep {
  /**
   * When the step began of which this is a retry. Recipients that it deferred since are not tried again: their delay has not
   * passed.
   */
  retryOf?: Date | undefined;
  /** The first attempt marks the message `sending`. Otherwise nothing is sent unless the message is `sending`. */
  marksSending?: boolean | undefined;
}

/**
 * Runs one SMTP transaction per unsettled recipient. An attempt row is committed before each transaction, and its result
 * afterwards. An open row means that a worker crashed in between: it becomes `ambiguous`, and the message is not sent
 * twice.
 *
 * @param isAborted checked before each recipient.
 * @returns `interrupted` if it ended the loop before the last recipient.
 * @throws AppError `unavailable` until a restored database is reconciled.
 * @throws UnsendableMessageError if no message can be built from the stored data.
 */
export async function transmitMessage(
  options: TransmissionOptions,
  messageId: string,
  isAborted: () => boolean,
  { retryOf, marksSending }: TransmissionStep = {},
): Promise<'done' | 'interrupted'> {
  const { database, storage, returnPaths, outcomes, dkimKeys } = options;
  const loaded = await loadTransmission(database, messageId);
  if (!loaded) return 'done';
  if (loaded.isRestorePending) throw restorePending();
  const { message, recipients, sandbox } = loaded;
  // Canceled while this step was waiting for its retry.
  if (loaded.status === 'canceled') return 'done';
  const stored = await ensureMimeStored(database, storage, message, dkimKeys);
  const openRaw = createRawSource(storage, stored);
  const { simulator, mailTransport } = options;
  let unsaved = stored.isKeySaved ? undefined : stored;
  let mustMark = marksSending;
  let isInterrupted = false;
  for (const recipient of recipients) {
    if (isSettled(recipient.status)) continue;
    isInterrupted = isAborted();
    if (isInterrupted) break;
    const step = { retryOf, marksSending: mustMark, raw: unsaved };
    const attempt = await beginAttempt(database, message, recipient.position, step);
    if (!attempt) continue;
    mustMark = false;
    unsaved = undefined;
    const transport = sandbox || simulator.isSimulatorAddress(recipient.email) ? simulator : mailTransport;
    const sender = returnPaths.create(message.id, recipient.position);
    const result = await transport.transmit({
      sender,
      recipient: recipient.email,
      ...withRecipientToken({ openRaw, sizeBytes: stored.sizeBytes }, sender),
      envelopeId: `${message.id}.${recipient.position}`,
    });
    // Another worker assumed that this one had crashed and recorded the attempt as ambiguous. Apply the real result.
    if ((await settleAttempt(database, attempt, result)) === 'corrected')
      await recordSend(database, outcomes, message.id);
  }
  if (unsaved) await saveRawKey(database, messageId, unsaved);
  return isInterrupted ? 'interrupted' : 'done';
}

type OutgoingRecipient = Pick<Recipient, 'position' | 'email' | 'status'>;

interface LoadedTransmission {
  message: OutgoingMessage;
  status: MessageStatus;
  recipients: OutgoingRecipient[];
  sandbox: boolean;
  /** The message may have been sent before the database was restored. */
  isRestorePending: boolean;
}

async function loadTransmission({ db }: Database, messageId: string): Promise<LoadedTransmission | null> {
  const [row] = await selectTransmission(db, { messageId });
  if (!row) return null;
  const { status, recipients, sandbox, isRestorePending, ...message } = row;
  return { message, status, recipients, sandbox, isRestorePending: Boolean(isRestorePending) };
}

const selectTransmission = compileOnce((db, { messageId }: { messageId: string }) =>
  db
    .selectFrom('messages as m')
    .innerJoin('environments as e', 'e.id', 'm.env_id')
    .select([
      'm.id',
      'm.status',
      'm.org_id as organizationId',
      'm.from_email as fromEmail',
      'm.from_name as fromName',
      'm.to',
      'm.cc',
      'm.reply_to as replyTo',
      'm.subject',
      'm.text_body as textBody',
      'm.html_body as htmlBody',
      'm.headers',
      'm.has_attachments as hasAttachments',
      'm.rfc_message_id as rfcMessageId',
      'm.in_reply_to as inReplyTo',
      'm.reference_ids as references',
      'm.auto_submitted as autoSubmitted',
      'm.created_at as createdAt',
      'm.submitted_key as submittedKey',
      'm.raw_key as rawKey',
      'm.size_bytes as sizeBytes',
      sql<boolean>`e.kind = 'sandbox'`.as('sandbox'),
      IS_RESTORE_PENDING.as('isRestorePending'),
      sql<
        OutgoingRecipient[]
      >`(select coalesce(jsonb_agg(jsonb_build_object('position', position, 'email', email,
          'status', status) order by position), '[]')
        from message_recipients where message_id = m.id)`.as('recipients'),
    ])
    .where('m.id', '=', messageId)
    .modifyEnd(PREPARED),
);

export type AttemptKey = Pick<SendAttempt, 'messageId' | 'position' | 'number'>;

const MAX_RESPONSE_CHARACTERS = 1_000;
/** Recording is retried for a long time, because an attempt without a recorded result becomes ambiguous. */
const MAX_SETTLE_TRIES = 120;
const SETTLE_PAUSE_MS = 1_000;

interface AttemptOptions extends TransmissionStep {
  /** The stored MIME message, if the message's row does not have its key yet. The attempt's statement saves it. */
  raw?: StoredMime | undefined;
}

/**
 * Commits the `attempting` row in one statement, under the message's lock: the status of a message that is canceled in the
 * meantime is read again when the lock is granted. Two concurrent calls get the same number, and the primary key allows only
 * one of them.
 *
 * @returns null if nothing may be sent: the message is no longer unsent, the recipient was canceled, or the last attempt
 * does not allow another one. An open attempt belongs to a crashed worker and becomes `ambiguous`.
 */
export async function beginAttempt(
  { db }: Database,
  { id: messageId }: Pick<Message, 'id'>,
  position: number,
  { retryOf, marksSending = false, raw }: AttemptOptions = {},
): Promise<AttemptKey | null> {
  const [begun] = await insertAttempt(db, {
    messageId,
    position,
    retryOf: retryOf ?? null,
    marksSending,
    rawKey: raw?.rawKey,
    sizeBytes: raw?.sizeBytes,
  });
  if (begun) return { messageId, position, number: begun.number };
  await abandonAttempts(db, messageId).where('position', '=', position).execute();
  return null;
}

interface BegunAttempt extends Omit<AttemptKey, 'number'> {
  retryOf: Date | null;
  marksSending: boolean;
  rawKey: string | undefined;
  sizeBytes: number | undefined;
}

const insertAttempt = compileOnce(
  (db, { messageId, position, retryOf, marksSending, rawKey, sizeBytes }: BegunAttempt) => {
    const locked = db.with('sending', (query) =>
      query
        .selectFrom('messages as m')
        .innerJoin('message_recipients as r', 'r.message_id', 'm.id')
        .select(['m.id', 'm.org_id'])
        .where('m.id', '=', messageId)
        .where(marksSending ? IS_UNSENT : sql<boolean>`m.status = 'sending'`)
        .where('r.position', '=', position)
        .where('r.status', 'in', ['pending', 'deferred'])
        // Locks the recipient too, so that one canceled in the meantime is no longer open when the lock is granted.
        .forUpdate(['m', 'r']),
    );
    const hasNewKey = rawKey !== undefined && sizeBytes !== undefined;
    const changed: Pick<typeof locked, 'with'> =
      marksSending || hasNewKey
        ? locked.with('changed', (query) =>
            query
              .updateTable('messages')
              .set({
                ...(marksSending ? { status: 'sending', status_detail: null, updated_at: sql`now()` } : {}),
                ...(hasNewKey ? withRawKey(rawKey, sizeBytes) : {}),
              })
              .where('id', '=', messageId)
              // Reading `sending` makes PostgreSQL lock the row before it changes it.
              .where(sql<boolean>`exists (select from sending)`),
          )
        : locked;
    return changed
      .with('last', (query) =>
        query
          .selectFrom('send_attempts')
          .select(['number', 'state', 'canceled', 'started_at'])
          .where('message_id', '=', messageId)
          .where('position', '=', position)
          .orderBy('number', 'desc')
          .limit(1),
      )
      .insertInto('send_attempts')
      .columns(['message_id', 'position', 'number', 'org_id', 'state', 'started_at'])
      .expression((query) =>
        query
          .selectFrom('sending')
          .leftJoin('last', (join) => join.onTrue())
          .select([
            'sending.id',
            sql<number>`${position}::smallint`.as('position'),
            sql<number>`coalesce(last.number, 0) + 1`.as('number'),
            'sending.org_id',
            sql<SendAttemptState>`'attempting'`.as('state'),
            sql<Date>`now()`.as('started_at'),
          ])
          .where(({ eb, or, and }) =>
            or([
              eb('last.state', 'is', null),
              and([
                eb('last.state', '=', 'deferred'),
                eb('last.canceled', '=', false),
                sql<boolean>`coalesce(last.started_at < ${retryOf}::timestamptz, true)`,
              ]),
            ]),
          ),
      )
      .returning('number')
      .modifyEnd(PREPARED);
  },
  ['marksSending'],
);

/**
 * Commits the result of an attempt. It retries for two minutes, and corrects an attempt that another worker has since
 * marked ambiguous.
 *
 * @returns `corrected` in that case: the ambiguity may already be applied to the message.
 * @throws the database error after the last retry.
 */
export async function settleAttempt(
  database: Database,
  key: AttemptKey,
  result: TransmissionResult,
): Promise<'settled' | 'corrected'> {
  const values = { ...key, ...toFields(result), finishedAt: new Date() };
  const settle = async (stateBefore: SendAttemptState) =>
    (await updateAttempt(database.db, { ...values, stateBefore })).length === 1;
  for (let tries = 1; ; tries += 1) {
    try {
      if (await settle('attempting')) return 'settled';
      return (await settle('ambiguous')) ? 'corrected' : 'settled';
    } catch (error) {
      if (tries >= MAX_SETTLE_TRIES) throw error;
      await pause(SETTLE_PAUSE_MS);
    }
  }
}

type AttemptResult = Pick<SendAttempt, 'state' | 'response'> &
  Partial<
    Pick<SendAttempt, 'statusCode' | 'refusedScope' | 'providerMessageId' | 'reportsDelivery' | 'simulated'>
  >;

const updateAttempt = compileOnce(
  (db, values: AttemptKey & AttemptResult & { finishedAt: Date; stateBefore: SendAttemptState }) =>
    db
      .updateTable('send_attempts')
      .set({
        state: values.state,
        response: values.response,
        status_code: values.statusCode,
        refused_scope: values.refusedScope,
        provider_message_id: values.providerMessageId,
        reports_delivery: values.reportsDelivery,
        ...(values.simulated === undefined ? {} : { simulated: json(values.simulated) }),
        finished_at: values.finishedAt,
        recorded: false,
      })
      .where('message_id', '=', values.messageId)
      .where('position', '=', values.position)
      .where('number', '=', values.number)
      .where('state', '=', values.stateBefore)
      .returning('number')
      .modifyEnd(PREPARED),
);

function toFields(result: TransmissionResult): AttemptResult {
  const response = storableText(result.response, MAX_RESPONSE_CHARACTERS);
  switch (result.kind) {
    case 'accepted':
      return {
        state: 'accepted',
        response,
        statusCode: null,
        providerMessageId:
          result.providerMessageId === null ? null : storableText(result.providerMessageId, 255),
        reportsDelivery: result.reportsDelivery,
        simulated: result.reports?.map(toSimulatedOutcome) ?? null,
      };
    case 'deferred':
      return { state: 'deferred', response, statusCode: result.statusCode };
    case 'refused':
      return { state: 'refused', response, statusCode: result.statusCode, refusedScope: result.scope };
    case 'ambiguous':
      return { state: 'ambiguous', response, statusCode: null };
  }
}

function toSimulatedOutcome({ action, status, diagnosticCode }: ImmediateReport): SimulatedOutcome {
  return { kind: action === 'failed' ? 'bounced' : action, statusCode: status, diagnosticCode };
}
