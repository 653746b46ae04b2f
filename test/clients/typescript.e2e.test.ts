import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import nodemailer from 'nodemailer';
import {
  AgentEmail,
  type Event,
  type Inbox,
  NotFoundError,
  PermissionDeniedError,
} from '../../clients/typescript/src/index.ts';
import type { Database } from '../../platform/database/database.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { startFurtherApi, terminate } from '../support/isolated-service.ts';
import { createKey, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { sharedService } from '../support/service.ts';
import { connect } from '../support/test-app.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

jest.setTimeout(60_000);

const service = sharedService();
let database: Database;
let organization: TestOrganization;
let client: AgentEmail;
let inbox: Inbox;

beforeAll(async () => {
  database = connect(service.database_url);
  organization = await createOrganization(database);
  client = new AgentEmail({ apiKey: organization.token, baseUrl: service.base_url });
  inbox = await client.inboxes.create({ client_id: 'agent', display_name: 'Agent' });
});

afterAll(() => database.close());

const message = (subject: string) => ({ to: ['ada@people.example'], subject, text_body: 'Hello' });

async function deliver(subject: string, text: string, headers: Record<string, string> = {}): Promise<void> {
  const transport = nodemailer.createTransport({ ...service.inbound_smtp, secure: false, ignoreTLS: true });
  await transport.sendMail({ from: 'Ada <ada@people.example>', to: inbox.email, subject, text, headers });
  transport.close();
}

test('the story: a draft, its delivery, the answer of a person, the thread, signed webhooks', async () => {
  const receiver = new WebhookReceiver();
  const events = ['message.delivered', 'message.received'] as const;
  const endpoint = await client.webhookEndpoints.create({
    url: await receiver.start(),
    events: [...events],
    inbox_ids: [inbox.id],
  });
  try {
    const draft = await client.drafts.create(inbox.id, {
      to: [{ email: 'ada@people.example', name: 'Ada' }],
    });
    const written = await client.drafts.update(draft.id, {
      subject: 'The report you asked for',
      text_body: 'Dear Ada,\n\nthe report is ready. Shall I send it?',
      if_match: `"${draft.version}"`,
    });
    expect(written.version).toBeGreaterThan(draft.version);
    const sent = await client.drafts.send(draft.id);
    if (sent.object !== 'message') throw new Error('The draft waits for approval');
    expect((await client.waitForOutcome(sent.id)).status).toBe('delivered');

    const answer = client.waitForMessage(sent.thread_id, { view: 'agent' });
    await deliver(
      'Re: The report you asked for',
      'Yes, please send it.\n\nOn Monday, the agent wrote:\n> Dear Ada,',
      {
        'In-Reply-To': sent.rfc_message_id ?? '',
      },
    );
    expect((await answer).text).toBe('Yes, please send it.');
    const reply = await client.messages.reply((await answer).id, { text_body: 'Here it is.', view: 'agent' });
    expect(reply).toMatchObject({ object: 'message', to: [{ email: 'ada@people.example' }] });
    const thread = await client.threads.get(sent.thread_id);
    expect(thread.message_count).toBe(3);

    await eventually(() => expect(receiver.received.length).toBeGreaterThanOrEqual(2), 20_000);
    const { secret = '' } = endpoint;
    const unwrapped = receiver.received.map(({ body, headers }) =>
      client.webhooks.unwrap(body, headers, secret),
    );
    expect(new Set(unwrapped.map(({ type }) => type))).toEqual(new Set(events));
  } finally {
    await receiver.stop();
    await client.webhookEndpoints.delete(endpoint.id);
  }
});

test('a send whose answers are lost is sent once', async () => {
  await using proxy = await CuttingProxy.start(service.base_url);
  const behind = new AgentEmail({ apiKey: organization.token, baseUrl: proxy.url });
  proxy.answersToLose = 2;
  const sent = await behind.messages.send(inbox.id, message('Only once'));
  expect(proxy.answersToLose).toBe(0);
  const found = await client.messages.list(inbox.id, { subject: 'Only once' });
  expect(found.data.map(({ id }) => id)).toEqual([sent.id]);

  proxy.answersToLose = 1;
  const upload = await behind.attachments.upload(inbox.id, new File(['a'.repeat(100)], 'a.txt'));
  proxy.answersToLose = 1;
  expect(await behind.messages.delete(sent.id)).toBeUndefined();
  await expect(client.messages.get(sent.id)).rejects.toThrow(NotFoundError);
  expect(upload.size_bytes).toBe(100);
});

test('a stream goes on after kill -9 of its API, without loss or double', async () => {
  const settings = parseEnv(readFileSync(join(service.dataDir, 'api.env'), 'utf8')) as Record<string, string>;
  let api = await startFurtherApi({ ...settings, LOG_LEVEL: 'warn' });
  await using proxy = await CuttingProxy.start(api.baseUrl);
  const stream = new AgentEmail({ apiKey: organization.token, baseUrl: proxy.url }).events.stream({
    types: ['message.delivered'],
    inbox_id: inbox.id,
  });
  const events: Event[] = [];
  const reading = (async () => {
    for await (const event of stream) events.push(event);
  })();
  await eventually(() => expect(stream.position).toBeDefined());
  const sendSome = async (count: number) => {
    const { data } = await client.messages.sendBatch(inbox.id, {
      messages: Array.from({ length: count }, (_, index) => message(`Part ${index}`)),
    });
    return data.map(({ message_id }) => message_id);
  };
  try {
    const sent = await sendSome(3);
    await eventually(() => expect(events.length).toBeGreaterThan(0), 20_000);
    await terminate(api.child, 'SIGKILL');
    sent.push(...(await sendSome(4)));
    for (const id of sent) await client.waitForOutcome(String(id));
    api = await startFurtherApi({ ...settings, LOG_LEVEL: 'warn' });
    proxy.retarget(api.baseUrl);
    await eventually(() => expect(events.length).toBeGreaterThanOrEqual(sent.length), 30_000);
    sent.push(...(await sendSome(1)));
    await eventually(() => expect(events.length).toBeGreaterThanOrEqual(sent.length), 30_000);
    const streamed = events.map(({ data }) => (data as { message_id: string }).message_id);
    expect(streamed.toSorted()).toEqual(sent.map(String).toSorted());
  } finally {
    stream.close();
    await reading;
    await terminate(api.child);
  }
});

test('a code, a decision, labels, files, and a search', async () => {
  const code = client.waitForCode(inbox.id, { from: 'people.example' });
  await deliver('Your code', 'Your code is 481516. It expires in 10 minutes.');
  expect(await code).toMatchObject({ value: '481516', message: { subject: 'Your code' } });
  const { id } = (await code).message;
  const { data } = await client.messages.changeLabels({ ids: [id, 'msg_unknown'], add: ['done'] });
  expect(data.map(({ error }) => error?.code)).toEqual([undefined, 'not_found']);
  const labeled = [];
  for await (const one of client.messages.listAll({ label: 'done', view: 'agent', limit: 1 }))
    labeled.push(one.id);
  expect(labeled).toEqual([id]);

  const attach = () =>
    client.attach(
      inbox.id,
      [
        { filename: 'small.txt', content: 'small' },
        { filename: 'large.bin', content: new Uint8Array(1_500_000) },
      ],
      { idempotencyKey: 'files' },
    );
  const attachments = await attach();
  // The service returns the same id, so that the send is the same, too.
  expect(await attach()).toEqual(attachments);

  const later = await client.messages.send(inbox.id, {
    ...message('Later'),
    attachments,
    send_at: new Date(Date.now() + 1_000).toISOString(),
  });
  expect(later.object).toBe('draft');
  const decision = await client.waitForDecision(later.id);
  expect(decision).toMatchObject({ outcome: 'sent' });
  const sent = await client.messages.get(decision.message_id ?? '', { view: 'agent' });
  expect(sent.attachments?.map(({ filename, size_bytes }) => [filename, size_bytes])).toEqual([
    ['small.txt', 5],
    ['large.bin', 1_500_000],
  ]);
});

test('a key that may not read gets receipts, and errors name what it lacks', async () => {
  const { organizationId } = organization;
  const { token } = await createKey(database, { organizationId, permissions: ['messages:send'] });
  const writer = new AgentEmail({ apiKey: token, baseUrl: service.base_url, receipts: true });
  const { data: receipt, response } = await writer.messages.send(inbox.id, message('Written')).withResponse();
  expect(receipt.object).toBe('receipt');
  expect(response.status).toBe(201);
  const refusal = await writer.messages.get(receipt.id).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(PermissionDeniedError);
  expect((refusal as PermissionDeniedError).problem).toMatchObject({
    permission: 'messages:read',
    status: 403,
  });
});
