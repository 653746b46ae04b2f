import { EventEntity } from '../../domain/events/event.entity.ts';
import { MessageEntity, RecipientEntity } from '../../domain/messages/message.entity.ts';
import type { SendState } from '../../domain/outbound/message-status.ts';
import { createSendService } from '../../domain/outbound/send.service.ts';
import { SendAttemptEntity } from '../../domain/outbound/send-attempt.entity.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import {
  accepted,
  ambiguous,
  createMailServices,
  noApprovals,
  ScriptedTransport,
  testUnsubscribeLinks,
} from './mail-services.ts';
import { createInbox, createOrganization } from './organizations.ts';
import { recordingOutbox } from './test-app.ts';
import { testScope } from './test-scope.ts';

export type Sending = Awaited<ReturnType<typeof arrangeSending>>;

/** Lets a new inbox send with a real database and a fake relay that accepts everything. */
export async function arrangeSending(
  database: Database,
  { environment = 'production' }: { environment?: 'production' | 'sandbox' } = {},
) {
  const organization = await createOrganization(database);
  const inbox = await createInbox(database, organization, {
    environmentId:
      environment === 'sandbox' ? organization.sandboxEnvironmentId : organization.productionEnvironmentId,
  });
  const { outbox, commands } = recordingOutbox();
  const transport = new ScriptedTransport(async () => accepted);
  const services = createMailServices(database, transport, { outbox });
  const sends = createSendService({
    drafts: noApprovals,
    unsubscribeLinks: testUnsubscribeLinks,
    database,
    outbox,
    events: createWebhookEvents({ outbox }),
  });
  const scope = testScope(organization, inbox);
  const sendTo = async (recipients: Partial<Record<'to' | 'cc' | 'bcc', { email: string }[]>>) => {
    const { message } = await sends.send(scope, inbox.id, {
      to: [],
      cc: [],
      bcc: [],
      ...recipients,
      replyTo: [],
      subject: 'Subject',
      textBody: 'Text',
      htmlBody: null,
      labels: [],
      headers: {},
    });
    return message.id;
  };
  const send = (...to: string[]) => sendTo({ to: to.map((email) => ({ email })) });
  return { ...services, transport, commands, sends, scope, send, sendTo, inbox };
}

/** A message whose relay accepted it for `a@`, and whose response for `b@` was lost. @returns the id of its run. */
export async function arrangeAmbiguousSend(database: Database): Promise<string> {
  const world = await arrangeSending(database);
  world.transport.answerWith(async ({ recipient }) => (recipient.startsWith('b@') ? ambiguous : accepted));
  const messageId = await world.send('a@people.example', 'b@people.example');
  await dispatchOnce(world, messageId);
  return sendMessageWorkflowId(messageId);
}

/** The state of a message in the database. */
export async function readMessageState(database: Database, messageId: string) {
  return database.systemTransaction(async ({ db }) => {
    const message = await db
      .selectFrom('messages')
      .select(columnsOf(MessageEntity))
      .where('id', '=', messageId)
      .executeTakeFirstOrThrow();
    const recipients = await db
      .selectFrom('message_recipients')
      .select(columnsOf(RecipientEntity))
      .where('message_id', '=', messageId)
      .orderBy('position')
      .execute();
    const attempts = await db
      .selectFrom('send_attempts')
      .select(columnsOf(SendAttemptEntity))
      .where('message_id', '=', messageId)
      .orderBy('position')
      .orderBy('number')
      .execute();
    const events = await db
      .selectFrom('events')
      .select(columnsOf(EventEntity))
      .where('org_id', '=', message.organizationId)
      .orderBy('id')
      .execute();
    return {
      status: message.status,
      message,
      recipients: recipients.map(({ status }) => status),
      attempts: attempts.map(({ state }) => state),
      events,
      types: events.map(({ type }) => type),
    };
  });
}

/** One round of the workflow `sendMessage`. */
export async function dispatchOnce({ dispatch }: Pick<Sending, 'dispatch'>, messageId: string) {
  const prepared = await dispatch.prepare(messageId);
  if (prepared === 'finished' || prepared === 'held') return prepared;
  await dispatch.transmit(messageId, () => false);
  return recordOnce({ dispatch }, messageId);
}

/** Records the attempts. Returns what is left to do, as one word. */
export async function recordOnce({ dispatch }: Pick<Sending, 'dispatch'>, messageId: string) {
  return summarize(await dispatch.record(messageId));
}

export function summarize({ hasUnsent, ambiguous }: SendState): 'settled' | 'deferred' | 'needs_attention' {
  if (ambiguous.length > 0) return 'needs_attention';
  return hasUnsent ? 'deferred' : 'settled';
}
