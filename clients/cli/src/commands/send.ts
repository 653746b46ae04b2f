import type { Context } from '../context.ts';
import type { AgentEmail } from '../sdk.ts';
import { openSession } from '../session.ts';
import { type BodyOptions, readBody, readFiles } from './compose.ts';
import { findInboxId } from './inbox-argument.ts';
import { type Changed, changedLines, messageLines } from './message-lines.ts';
import { failureOf, waitForOutcome } from './outcome.ts';

export interface SendOptions extends BodyOptions {
  from?: string;
  to: string[];
  cc?: string[];
  bcc?: string[];
  replyTo?: string[];
  subject?: string;
  at?: string;
  idempotencyKey?: string;
  /** Seconds. */
  wait?: number;
}

export interface ReplyOptions extends BodyOptions {
  all?: true;
  idempotencyKey?: string;
  wait?: number;
}

export async function send(context: Context, options: SendOptions): Promise<void> {
  const body = await readBody(context, options);
  const files = await readFiles(options.attach);
  const { client } = await openSession(context);
  const inboxId = await findInboxId(client, options.from);
  const { to, cc, bcc, replyTo: reply_to, subject, at: send_at } = options;
  const attachments = await client.attach(inboxId, files);
  const sent = await client.messages.send(
    inboxId,
    {
      to,
      cc,
      bcc,
      reply_to,
      subject,
      send_at,
      ...body,
      ...(files.length > 0 ? { attachments } : {}),
      view: 'agent',
    },
    keyOf(options),
  );
  await finish(context, client, sent, options.wait);
}

export async function reply(context: Context, messageId: string, options: ReplyOptions): Promise<void> {
  const body = await readBody(context, options);
  const files = await readFiles(options.attach);
  const { client } = await openSession(context);
  const attachments =
    files.length > 0 ? await client.attach(await findInboxOf(client, messageId), files) : undefined;
  const sent = await client.messages.reply(
    messageId,
    { ...body, attachments, reply_all: options.all, view: 'agent' },
    keyOf(options),
  );
  await finish(context, client, sent, options.wait);
}

const findInboxOf = async (client: AgentEmail, messageId: string): Promise<string> =>
  (await client.messages.get(messageId, { view: 'agent' })).inbox_id;

const keyOf = ({ idempotencyKey }: { idempotencyKey?: string }) =>
  idempotencyKey === undefined ? {} : { idempotencyKey };

/** Answers with what was sent, or with its outcome if the caller waits for that. */
export async function finish(
  { output }: Context,
  client: Parameters<typeof waitForOutcome>[0],
  sent: Changed,
  waitSeconds: number | undefined,
): Promise<void> {
  if (waitSeconds === undefined) return output.answer(sent, () => changedLines(sent));
  const outcome = await waitForOutcome(client, sent.id, waitSeconds);
  output.answer(outcome, () => messageLines({ ...outcome, text: undefined }));
  const failure = failureOf(outcome);
  if (failure) throw failure;
}
