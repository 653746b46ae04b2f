import { beforeAll, expect, jest, test } from '@jest/globals';
import nodemailer, { type SendMailOptions } from 'nodemailer';
import { TOOLS } from '../../api/mcp/tools/index.ts';
import { AGENT_PERMISSIONS } from '../../domain/identity/permissions.ts';
import { findArrived } from '../support/arrived-mail.ts';
import { apiClient, type Call } from '../support/client.ts';
import { unfence } from '../support/mcp-client.ts';
import {
  connectPython,
  connectTypeScript,
  findInspectorObstacle,
  findPythonObstacle,
  type HostClient,
  inspect,
} from '../support/mcp-clients.ts';
import { createKey, createOrganization } from '../support/organizations.ts';
import { readRecipes } from '../support/recipes.ts';
import { sharedService } from '../support/service.ts';
import { createTestSession } from '../support/sessions.ts';
import { connect } from '../support/test-app.ts';
import { useResource } from '../support/use-resource.ts';

jest.setTimeout(120_000);
const service = sharedService();
const url = `${service.base_url}/mcp`;
const database = useResource(
  () => connect(service.database_url),
  (connected) => connected.close(),
);

type Answer = Record<string, unknown>;

/** An agent with an inbox, a person of its organization, and Ada, who writes to it. */
class Agent {
  private client: HostClient;
  readonly person: Call;
  inbox: Answer = {};
  /** What the recipes pass on: ids of messages and threads. */
  readonly seen: Record<string, string> = {};
  constructor(client: HostClient, person: Call) {
    this.client = client;
    this.person = person;
  }

  /** Calls a tool that must succeed. */
  async ask(name: string, args: object = {}): Promise<Answer> {
    const { isError, answer, text } = await this.client.call(name, args);
    expect({ name, isError, text }).toEqual({ name, isError: false, text: expect.any(String) });
    expect(JSON.parse(text)).toEqual(answer);
    return unfence(answer);
  }

  async fail(name: string, args: object): Promise<Answer> {
    const { isError, answer } = await this.client.call(name, args);
    expect({ name, isError, fix: answer.fix }).toEqual({ name, isError: true, fix: expect.any(String) });
    return answer;
  }

  send = (fields: object) => this.ask('send_message', { inbox_id: this.inbox.id, ...fields });

  arrived = (subject: string) => findArrived(service.mail_ui, String(this.inbox.email), subject);

  async receive(mail: SendMailOptions): Promise<void> {
    const transport = nodemailer.createTransport({ ...service.inbound_smtp, secure: false, ignoreTLS: true });
    await transport.sendMail({ from: 'Ada <ada@people.example>', to: String(this.inbox.email), ...mail });
    transport.close();
  }
}

const filesOf = (mail: Awaited<ReturnType<typeof findArrived>>) =>
  mail.attachments.map(({ filename, content }) => [filename, content.toString()]);

/** The recipes of docs/recipes.md that agents can do by tools, by their titles and in their order. */
const BY_TOOLS: Record<string, (agent: Agent) => Promise<void>> = {
  async 'Create once'(agent) {
    agent.inbox = await agent.ask('create_inbox', { client_id: 'orders', display_name: 'Orders' });
    expect(agent.inbox).toMatchObject({ object: 'inbox', display_name: 'Orders', status: 'active' });
    expect(await agent.ask('create_inbox', { client_id: 'orders' })).toEqual(agent.inbox);
    expect((await agent.ask('list_inboxes')).data).toHaveLength(1);
  },
  async 'Attach files'(agent) {
    const note = { filename: 'note.txt', content_type: 'text/plain', content: 'VGhhbmtzIQ==' };
    const invoice = {
      to: ['Ada <ada@people.example>'],
      subject: 'Your invoice',
      text_body: 'Here it is. Is the address right?',
      attachments: [note],
      idempotency_key: 'invoice-4711',
    };
    const sent = await agent.send(invoice);
    expect(sent).toMatchObject({ object: 'message', attachments: [{ filename: 'note.txt', size_bytes: 7 }] });
    expect(await agent.send(invoice)).toMatchObject({ id: sent.id, replayed: true });
    expect(filesOf(await agent.arrived('Your invoice'))).toEqual([['note.txt', 'Thanks!']]);
    agent.seen.message = String(sent.id);
    const other = { inbox_id: agent.inbox.id, ...invoice, text_body: 'Another' };
    expect((await agent.fail('send_message', other)).code).toBe('idempotency_key_reused');
  },
  async 'Wait for an outcome'(agent) {
    const args = { message_id: agent.seen.message, wait_seconds: 50 };
    const status = await agent.ask('delivery_status', args);
    expect(status).toMatchObject({
      object: 'delivery_status',
      status: 'delivered',
      recipients: [{ email: 'ada@people.example' }],
    });
  },
  async 'Read what is new'(agent) {
    const { messageId } = await agent.arrived('Your invoice');
    await agent.receive({
      cc: 'Bob <bob@people.example>',
      subject: 'Re: Your invoice',
      inReplyTo: messageId,
      text: 'No, I have moved. See the photo.\n\nOn Mon, Nov 23, 2026 at 9:00 AM Orders wrote:\n> Here it is.\n',
      attachments: [{ filename: 'door.txt', content: 'a door' }],
    });
    const inbox_id = agent.inbox.id;
    const answer = await agent.ask('wait_for_message', { inbox_id, timeout_seconds: 50 });
    expect(answer).toMatchObject({
      direction: 'inbound',
      from: { email: 'ada@people.example', name: 'Ada' },
      text: 'No, I have moved. See the photo.',
      attachments: [{ filename: 'door.txt' }],
      since: answer.id,
    });
    const next = { inbox_id, since: answer.since, timeout_seconds: 1 };
    expect(await agent.ask('wait_for_message', next)).toMatchObject({ timed_out: true, since: answer.id });
    const { data } = await agent.ask('list_messages', { inbox_id, direction: 'inbound' });
    expect(data).toMatchObject([{ id: answer.id }]);
    const [{ id: attachment_id } = {}] = answer.attachments as Answer[];
    expect((await agent.ask('get_attachment', { attachment_id })).text).toBe('a door');
    agent.seen.last = String(answer.id);
    agent.seen.thread = String(answer.thread_id);
  },
  async 'Reply to all'(agent) {
    const reply = { message_id: agent.seen.last, text_body: 'Thank you.', reply_all: true };
    expect(await agent.ask('reply', reply)).toMatchObject({
      thread_id: agent.seen.thread,
      to: [{ email: 'ada@people.example' }],
      cc: [{ email: 'bob@people.example' }],
      subject: 'Re: Your invoice',
    });
    await agent.arrived('Re: Your invoice');
    const { messages } = await agent.ask('get_thread', { thread_id: agent.seen.thread });
    expect(messages).toHaveLength(3);
  },
  async Forward(agent) {
    const forward = {
      message_id: agent.seen.last,
      to: ['depot@people.example'],
      text_body: 'Please change it.',
    };
    expect(await agent.ask('forward', forward)).toMatchObject({ subject: 'Fwd: Your invoice' });
    expect(filesOf(await agent.arrived('Fwd: Your invoice'))).toEqual([['door.txt', 'a door']]);
  },
  async Find(agent) {
    const found = await agent.ask('search_messages', { q: 'photo from:ada@people.example has:attachment' });
    expect(found).toMatchObject({ data: [{ id: agent.seen.last }], has_more: false, next_cursor: null });
    expect((await agent.fail('search_messages', { q: 'size:5' })).code).toBe('validation_error');
  },
  async Label(agent) {
    const change = { message_ids: [agent.seen.last, 'msg_unknown'], add: ['answered'] };
    expect((await agent.ask('update_labels', change)).data).toMatchObject([
      { message_id: agent.seen.last, error: null },
      { message_id: 'msg_unknown', error: { code: 'not_found' } },
    ]);
    const { data } = await agent.ask('list_messages', { label: 'answered' });
    expect(data).toMatchObject([{ id: agent.seen.last, labels: ['answered'] }]);
  },
  async Schedule(agent) {
    const send_at = new Date(Date.now() + 2_000).toISOString();
    const fields = { to: ['ada@people.example'], subject: 'A reminder', text_body: 'Today.', send_at };
    const draft = await agent.send(fields);
    expect(draft).toMatchObject({ object: 'draft', send_status: 'scheduled', note: expect.any(String) });
    const outcome = await agent.ask('get_draft', { draft_id: draft.id, wait_seconds: 50 });
    expect(outcome).toMatchObject({ object: 'draft_outcome', draft_id: draft.id, outcome: 'sent' });
    await agent.arrived('A reminder');
  },
  async 'Get a code'(agent) {
    const text = 'Your code is 481516. It expires in 10 minutes.';
    await agent.receive({ from: 'Shop <no-reply@shop.example>', subject: 'Sign in', text });
    const wait = { inbox_id: agent.inbox.id, from: 'shop.example', timeout_seconds: 50 };
    const { codes } = await agent.ask('wait_for_code', wait);
    expect(codes).toMatchObject([{ value: '481516', confidence: 'high' }]);
  },
  async 'Understand a bounce'(agent) {
    const fields = { to: ['bounce@people.example'], subject: 'Hello', text_body: 'Anyone?' };
    const { id: message_id } = await agent.send(fields);
    const status = await agent.ask('delivery_status', { message_id, wait_seconds: 50 });
    expect(status).toMatchObject({ status: 'bounced', recipients: [{ status: 'bounced' }] });
    expect((await agent.ask('get_message', { message_id })).bounce).toMatchObject({
      type: 'Permanent',
      code: '5.1.1',
      suppressed: true,
      next: expect.any(String),
    });
    const again = { inbox_id: agent.inbox.id, ...fields, text_body: 'Still there?' };
    expect((await agent.fail('send_message', again)).code).toBe('message_rejected');
  },
  async 'Know the allowance'(agent) {
    expect(await agent.ask('whoami')).toMatchObject({
      object: 'credential',
      kind: 'api_key',
      sends: { today: { resets_at: expect.any(String) }, this_month: { resets_at: expect.any(String) } },
    });
  },
  async 'Wait for an approval'(agent) {
    const policy = await agent.person('PATCH', '/org/policies', { require_send_approval: 'external' });
    expect(policy.status).toBe(200);
    const offer = { to: ['ada@people.example'], subject: 'Our offer', text_body: 'Two for 15.' };
    const draft = await agent.send(offer);
    expect(draft).toMatchObject({
      object: 'draft',
      send_status: 'pending_approval',
      note: expect.stringContaining('a person must approve'),
    });
    const waiting = agent.ask('get_draft', { draft_id: draft.id, wait_seconds: 50 });
    const decision = { version: 1, note: 'Good price.' };
    expect((await agent.person('POST', `/drafts/${draft.id}/approve`, decision)).status).toBe(201);
    expect(await waiting).toMatchObject({ outcome: 'sent', note: 'Good price.' });
    await agent.arrived('Our offer');
  },
  async 'Follow and resume, then delete and prove it'(agent) {
    const inbox_id = agent.inbox.id;
    const { data } = await agent.ask('list_messages', { inbox_id, direction: 'inbound', limit: 1 });
    const [{ id: since } = {}] = data as Answer[];
    for (const subject of ['One', 'Two']) await agent.receive({ subject, text: subject });
    const first = await agent.ask('wait_for_message', { inbox_id, since, timeout_seconds: 50 });
    const second = await agent.ask('wait_for_message', { inbox_id, since: first.since, timeout_seconds: 50 });
    expect([first.subject, second.subject].sort()).toEqual(['One', 'Two']);
  },
};

/** The others, and parts of those above, which have no tool: agents that administer use the API. */
const WITHOUT_TOOLS: Record<string, string> = {
  'Verify webhooks and replay': 'manages webhook endpoints, and runs on a server of the user',
  'Use your own domain': 'manages a domain and its DNS',
  'Give a sub-agent its own key': 'manages keys',
};

test('each recipe is done by tools, or says why not', () => {
  const titles = readRecipes().flatMap(({ number, title }) => (number === null ? [] : [title]));
  expect(titles).toHaveLength(17);
  expect([...Object.keys(BY_TOOLS), ...Object.keys(WITHOUT_TOOLS)].sort()).toEqual(titles.sort());
});

async function arrange(connectClient: (key: string) => Promise<HostClient>) {
  const { organizationId, ownerId } = await createOrganization(database);
  const { token } = await createKey(database, { organizationId, permissions: [...AGENT_PERMISSIONS] });
  const owner = await createTestSession(database, ownerId);
  const client = await connectClient(token);
  return { client, agent: new Agent(client, apiClient(service, owner.token)) };
}

async function doRecipes(connectClient: (key: string) => Promise<HostClient>): Promise<void> {
  const { client, agent } = await arrange(connectClient);
  for (const [title, recipe] of Object.entries(BY_TOOLS))
    await recipe(agent).catch((cause: unknown) => {
      throw new Error(title, { cause });
    });
  await client.stop();
}

async function useOldRevision(): Promise<void> {
  const { client, agent } = await arrange((key) => connectPython(url, key, 'legacy'));
  expect(await agent.ask('create_inbox', { client_id: 'legacy' })).toMatchObject({ object: 'inbox' });
  expect((await agent.fail('get_message', { message_id: 'msg_none' })).code).toBe('not_found');
  await client.stop();
}

async function useInspector(): Promise<void> {
  const { token } = await createOrganization(database);
  const list = await inspect(url, token, ['--method', 'tools/list', '--strict']);
  expect((list as { tools: object[] }).tools).toHaveLength(TOOLS.length);
  const called = await inspect(url, token, ['--method', 'tools/call', '--tool-name', 'whoami']);
  expect(called).toMatchObject({ structuredContent: { object: 'credential', kind: 'api_key' } });
}

const python = findPythonObstacle();
const inspector = findInspectorObstacle();
/** Each with what keeps this machine from it. */
const RUNS: [string, string | undefined, () => Promise<void>][] = [
  [
    'the TypeScript client does the recipes',
    undefined,
    () => doRecipes((key) => connectTypeScript(url, key)),
  ],
  ['the Python client does the recipes', python, () => doRecipes((key) => connectPython(url, key))],
  ['the Python client works with a revision of 2025, too', python, useOldRevision],
  ['the Inspector finds the schemas of all tools portable, and calls one', inspector, useInspector],
];

// They mostly wait, so they run at the same time.
let outcomes: Map<string, PromiseSettledResult<void>>;
beforeAll(async () => {
  const possible = RUNS.filter(([, obstacle]) => obstacle === undefined);
  const settled = await Promise.allSettled(possible.map(([, , run]) => run()));
  outcomes = new Map(settled.map((outcome, index) => [possible[index]?.[0] ?? '', outcome]));
});

for (const [title, obstacle] of RUNS)
  (obstacle === undefined ? test : test.skip)(
    obstacle === undefined ? title : `${title}: ${obstacle}`,
    () => {
      const outcome = outcomes.get(title);
      if (outcome?.status !== 'fulfilled') throw outcome?.reason;
    },
  );
