import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv, promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import nodemailer, { type SendMailOptions } from 'nodemailer';
import { AgentEmail } from '../../clients/typescript/src/index.ts';
import type { Database } from '../../platform/database/database.ts';
import { CommandLine, type CommandResult } from '../support/command-line.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { expectWithin } from '../support/expect-within.ts';
import { startFurtherApi, terminate } from '../support/isolated-service.ts';
import { createOrganization, type TestOrganization } from '../support/organizations.ts';
import { setPolicies } from '../support/policies.ts';
import { sharedService } from '../support/service.ts';
import { connect } from '../support/test-app.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

jest.setTimeout(60_000);

/** Controls but line breaks, and what reorders text. */
const ACTIVE = /[^\P{Cc}\n]|[\u202a-\u202e]/u;
/** A subject that colors a terminal, sets its title and reorders what follows. */
const HOSTILE = 'Offer \u001b[31m\u001b]0;owned\u0007 \u202egnp.exe';

const service = sharedService();
let database: Database;
let organization: TestOrganization;
let cli: CommandLine;
let inbox: { id: string; email: string };
let folder: string;
beforeAll(async () => {
  database = connect(service.database_url);
  organization = await createOrganization(database);
  cli = await CommandLine.build();
  folder = mkdtempSync(join(tmpdir(), 'agent-email-cli-files-'));
  inbox = (await run('inboxes', 'create', '--client-id', 'cli', '--display-name', 'Agent')).json;
});
afterAll(async () => {
  await cli?.[Symbol.asyncDispose]();
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
});

const environment = (baseUrl = service.base_url) => ({
  AGENT_EMAIL_API_KEY: organization.token,
  AGENT_EMAIL_BASE_URL: baseUrl,
});
const { unwrap } = new AgentEmail({ apiKey: 'ask_live_unused', baseUrl: 'http://localhost' }).webhooks;
const run = (...parameters: string[]): Promise<CommandResult> => cli.run(parameters, { env: environment() });
const errorOf = ({ stderr }: CommandResult) => JSON.parse(stderr).error;

async function deliver(mail: SendMailOptions): Promise<void> {
  const transport = nodemailer.createTransport({ ...service.inbound_smtp, secure: false, ignoreTLS: true });
  await transport.sendMail({ from: 'Ada <ada@people.example>', to: inbox.email, text: 'Hello', ...mail });
  transport.close();
}

/** Runs a command line on a terminal of 100 columns. */
async function onTerminal(...parameters: string[]): Promise<string> {
  const words = [process.execPath, cli.program, ...parameters].map((word) => `'${word}'`).join(' ');
  const { stdout } = await promisify(execFile)('script', ['-qec', `stty cols 100; ${words}`, '/dev/null'], {
    env: { ...cli.environment, ...environment(), SHELL: '/bin/sh' },
  });
  return stdout.replaceAll('\r\n', '\n');
}

describe('mail', () => {
  test('whoami, inboxes, send, messages and read tell programs JSON', async () => {
    expect((await run('whoami')).json).toMatchObject({
      kind: 'api_key',
      org_id: organization.organizationId,
    });
    expect((await run('inboxes')).json).toEqual([expect.objectContaining({ id: inbox.id })]);
    expect((await run('inboxes', 'show', inbox.email)).json).toMatchObject({ id: inbox.id });
    const paused = await run('inboxes', 'pause', inbox.email, '--reason', 'It answers itself');
    expect(paused.json).toMatchObject({ send_paused: true, send_paused_reason: 'It answers itself' });
    expect((await run('inboxes', 'resume', inbox.email)).json).toMatchObject({ send_paused: false });

    const sent = await cli.run(['send', '--to', 'ada@people.example', '--subject', 'Piped', '--wait'], {
      env: environment(),
      input: 'Grüße aus der Leitung\n',
    });
    expect(sent.json).toMatchObject({ subject: 'Piped', status: 'delivered', text: 'Grüße aus der Leitung' });
    const { id } = sent.json as { id: string };
    expect((await run('read', id)).json).toMatchObject({ id, object: 'message' });
    expect((await run('messages', '--inbox', inbox.email, '--query', 'subject:Piped')).json).toEqual([
      expect.objectContaining({ id }),
    ]);
    expect((await run('wait', id)).json).toMatchObject({ id, status: 'delivered' });
  });

  test('send takes its body from options and files, attaches, and sends once for one idempotency key', async () => {
    const text = join(folder, 'text.txt');
    const html = join(folder, 'page.html');
    writeFileSync(text, 'The text');
    writeFileSync(html, '<p>The page</p>');
    const once = ['--to', 'Ada <ada@people.example>', '--cc', 'bob@people.example', '--subject', 'Files'];
    const parameters = [
      ...once,
      '--text-file',
      text,
      '--html-file',
      html,
      '--attach',
      text,
      '--idempotency-key',
      'k1',
    ];
    const [first, second] = [await run('send', ...parameters), await run('send', ...parameters)];
    expect(first.json).toMatchObject({ text: 'The text', attachments: [{ filename: 'text.txt' }] });
    expect((second.json as { id: string }).id).toBe((first.json as { id: string }).id);
    const onlyHtml = await run('send', '--to', 'ada@people.example', '--html-file', html);
    expect(onlyHtml.json).toMatchObject({ text: 'The page' });
  });

  test('send --wait ends with 1 when the message bounces, and waits for a person who must approve', async () => {
    const domain = inbox.email.split('@')[1];
    const bounced = await run('send', '--to', `bounced@simulator.${domain}`, '--text', 'x', '--wait');
    expect(bounced.exitCode).toBe(1);
    expect(bounced.json).toMatchObject({ status: 'bounced' });
    expect(errorOf(bounced)).toMatchObject({ code: 'message_bounced' });

    await setPolicies(database, organization.organizationId, { require_send_approval: 'all' });
    const waiting = await run('send', '--to', 'eve@people.example', '--text', 'x');
    expect(waiting.json).toMatchObject({ object: 'draft', send_status: 'pending_approval' });
    const late = await run('send', '--to', 'eve@people.example', '--text', 'x', '--wait', '1');
    expect(late.exitCode).toBe(4);
    await setPolicies(database, organization.organizationId, { require_send_approval: 'off' });
  });

  test('wait --code prints the code alone, wait a message, and both end with 4 when nothing comes', async () => {
    const code = cli.start(['wait', '--code', '--timeout', '30s'], { env: environment() });
    await deliver({ subject: 'Sign in', text: 'Your code is 481516. It expires in 10 minutes.' });
    expect(await code.ended).toMatchObject({ exitCode: 0, stdout: '481516\n', stderr: '' });
    const message = await run('wait', '--inbox', inbox.email, '--subject', 'Sign in');
    expect(message.json).toMatchObject({ subject: 'Sign in', codes: [{ value: '481516' }] });
    const { id } = message.json as { id: string };
    const none = await run('wait', inbox.id, '--since', id, '--timeout', '1');
    expect(none).toMatchObject({ exitCode: 4, stdout: '' });
    expect(errorOf(none)).toMatchObject({ code: 'timed_out' });
  });

  test('reply answers in the thread, and drafts are created, shown, listed, sent and deleted', async () => {
    await deliver({ subject: 'A question', text: 'When?' });
    const question = (await run('wait', '--subject', 'A question')).json as { id: string; thread_id: string };
    const answer = await run('reply', question.id, '--text', 'Today.', '--all');
    expect(answer.json).toMatchObject({ thread_id: question.thread_id, subject: 'Re: A question' });

    const draft = (
      await run('drafts', 'create', '--to', 'ada@people.example', '--subject', 'Later', '--text', 'x')
    ).json as { id: string };
    expect((await run('drafts', 'show', draft.id)).json).toMatchObject({ id: draft.id, text_body: 'x' });
    expect((await run('drafts')).json).toContainEqual(expect.objectContaining({ id: draft.id }));
    expect((await run('drafts', 'send', draft.id, '--wait')).json).toMatchObject({ status: 'delivered' });
    const other = (await run('drafts', 'create', '--text', 'x')).json as { id: string };
    expect((await run('drafts', 'delete', other.id)).json).toMatchObject({ deleted: true });
    expect((await run('drafts', 'show', other.id)).exitCode).toBe(1);
  });

  test('read --save writes base names, follows no link, and replaces nothing without --force', async () => {
    const target = join(folder, 'saved');
    await deliver({
      subject: 'Files',
      attachments: [
        { filename: '../../escape.txt', content: 'one' },
        { filename: 'invoice.pdf', content: 'two' },
        { filename: 'INVOICE.pdf', content: 'three' },
      ],
    });
    const { id } = (await run('wait', '--subject', 'Files')).json as { id: string };
    const saved = await run('read', id, '--save', target);
    expect(saved.exitCode).toBe(0);
    expect(readdirSync(target).sort()).toEqual(['INVOICE (2).pdf', 'escape.txt', 'invoice.pdf'].sort());
    expect(existsSync(join(folder, 'escape.txt'))).toBe(false);
    const again = await run('read', id, '--save', target);
    expect(again.exitCode).toBe(2);
    const elsewhere = join(folder, 'elsewhere.txt');
    writeFileSync(elsewhere, 'mine');
    rmSync(join(target, 'escape.txt'));
    symlinkSync(elsewhere, join(target, 'escape.txt'));
    expect((await run('read', id, '--save', target, '--force')).exitCode).toBe(0);
    expect(readFileSync(elsewhere, 'utf8')).toBe('mine');
    expect(readFileSync(join(target, 'escape.txt'), 'utf8')).toBe('one');
  });
});

describe('a terminal', () => {
  test('shows tables and fields, and a hostile subject does nothing to it', async () => {
    await deliver({
      from: '"\u202eEve" <eve@evil.example>',
      subject: HOSTILE,
      text: `${HOSTILE}\r\nsecond line`,
    });
    const { id } = (await run('wait', '--subject', 'Offer')).json as { id: string };
    const table = await onTerminal('messages', '--limit', '3');
    const message = await onTerminal('read', id);
    for (const shown of [table, message]) expect(shown).not.toMatch(ACTIVE);
    expect(table.split('\n')[0]).toMatch(/^ID +DATE +FROM +SUBJECT +STATUS$/);
    for (const line of table.split('\n')) expect(line.length).toBeLessThanOrEqual(100);
    // The service has replaced the controls of the header.
    expect(message).toMatch(/^Subject {2}Offer .+owned. \\u\{202e\}gnp\.exe$/m);
    expect(message).toContain('Offer \\u{1b}[31m\\u{1b}]0;owned\\u{7} \\u{202e}gnp.exe');
    const piped = await run('read', id);
    expect(piped.stdout).not.toMatch(ACTIVE);
  });

  test('shows errors as text with code, fix and request id', async () => {
    const shown = await onTerminal('read', 'msg_unknown').catch(({ stdout }: { stdout: string }) => stdout);
    expect(shown).toMatch(/^Error: .+ \(not_found\)\r?\nFix: .+\r?\nRequest: req_\w+\r?\n$/);
  });

  test('an odd locale and time zone change nothing that programs read', async () => {
    const env = { ...environment(), LC_ALL: 'tr_TR.UTF-8', LANG: 'C', TZ: 'Pacific/Chatham' };
    const odd = await cli.run(['inboxes'], { env });
    expect(odd.stdout).toBe((await run('inboxes')).stdout);
  });
});

describe('how commands end', () => {
  test('2 for wrong usage, 3 for the credential, 1 for the service and the network', async () => {
    for (const wrong of [
      ['nonsense'],
      ['send', '--text', 'x'],
      ['send', '--to', 'a@b.example'],
      ['wait', '--timeout', 'soon'],
      ['webhooks', 'listen', '--forward-to', 'http://192.0.2.1/hook'],
      ['purge', inbox.id],
      ['completion', 'powershell'],
      ['webhooks'],
    ]) {
      const result = await run(...wrong);
      expect({ wrong, exitCode: result.exitCode, stdout: result.stdout }).toEqual({
        wrong,
        exitCode: 2,
        stdout: '',
      });
    }
    const bad = await cli.run(['inboxes'], {
      env: { ...environment(), AGENT_EMAIL_API_KEY: 'ask_live_wrong' },
    });
    expect(bad.exitCode).toBe(3);
    const nobody = await cli.run(['inboxes'], { env: environment('http://127.0.0.1:9') });
    expect(nobody.exitCode).toBe(1);
    expect(errorOf(nobody)).toMatchObject({ code: 'unreachable' });
    expect((await run('--help')).exitCode).toBe(0);
    expect((await run('--version')).stdout).toBe('0.1.0\n');
  });

  test('0 when the reader has seen enough, without a word', async () => {
    const { stdout, stderr } = await promisify(execFile)(
      'bash',
      ['-c', `"${process.execPath}" "${cli.program}" completion bash | true; echo "\${PIPESTATUS[0]}"`],
      { env: cli.environment },
    );
    expect([stdout, stderr]).toEqual(['0\n', '']);
  });

  test('doctor finds nothing wrong here, and names what is elsewhere', async () => {
    const healthy = await run('doctor');
    expect(healthy.exitCode).toBe(0);
    const results = new Map(
      (healthy.json as { name: string; result: string }[]).map(({ name, result }) => [name, result]),
    );
    for (const name of [
      'cli',
      'address',
      'version',
      'clock',
      'credential',
      'permissions',
      'domains',
      'webhooks',
    ])
      expect({ name, result: results.get(name) }).toEqual({ name, result: 'ok' });
    const unknown = await cli.run(['doctor'], { env: environment('https://mail.invalid') });
    expect(unknown.json).toContainEqual(expect.objectContaining({ name: 'address', result: 'failed' }));
    const refused = await cli.run(['doctor'], {
      env: { ...environment(), AGENT_EMAIL_API_KEY: 'ask_live_wrong' },
    });
    expect(refused.exitCode).toBe(3);
    expect(refused.json).toContainEqual(expect.objectContaining({ name: 'credential', result: 'failed' }));
  });
});

describe('events', () => {
  test('tail shows them, and webhooks trigger and replay deliver to an endpoint', async () => {
    const receiver = new WebhookReceiver();
    const url = await receiver.start();
    const call = (path: string, body: object) =>
      fetch(`${service.base_url}/api/v1${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${organization.token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }).then((response) => response.json());
    const endpoint = (await call('/webhooks/endpoints', { url, events: ['message.received'] })) as {
      id: string;
    };
    try {
      const triggered = await run('webhooks', 'trigger', 'message.received');
      expect(triggered.json).toMatchObject({ object: 'webhook_delivery', test: true });
      await eventually(() => expect(receiver.received.length).toBeGreaterThanOrEqual(1), 20_000);

      const since = new Date(Date.now() - 5_000).toISOString();
      const tail = cli.start(['tail', '--types', 'message.received', '--limit', '1'], { env: environment() });
      // The stream begins with the next event.
      await eventually(async () => {
        if (tail.child.exitCode === null) await deliver({ subject: 'Tailed' });
        expect(tail.child.exitCode).toBe(0);
      }, 20_000);
      expect(JSON.parse(tail.stdout())).toMatchObject({
        type: 'message.received',
        data: { subject: 'Tailed' },
      });

      const job = await run('replay', endpoint.id, '--since', since, '--wait');
      expect(job.json).toMatchObject({ object: 'webhook_job', status: 'completed' });
      const delivery = (triggered.json as { id: string }).id;
      expect((await run('replay', delivery)).json).toMatchObject({ id: delivery });
    } finally {
      await receiver.stop();
      await fetch(`${service.base_url}/api/v1/webhooks/endpoints/${endpoint.id}`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${organization.token}` },
      });
    }
  });

  test('webhooks listen signs what it forwards, and loses nothing over kill -9 and a restart of the API', async () => {
    const settings = parseEnv(readFileSync(join(service.dataDir, 'api.env'), 'utf8')) as Record<
      string,
      string
    >;
    let api = await startFurtherApi({ ...settings, LOG_LEVEL: 'warn' });
    await using proxy = await CuttingProxy.start(api.baseUrl);
    const receiver = new WebhookReceiver();
    receiver.answerWith((_request, response, attempt) => response.writeHead(attempt === 1 ? 500 : 204).end());
    const listener = cli.start(
      ['webhooks', 'listen', '--types', 'message.delivered', '--forward-to', await receiver.start()],
      { env: environment(proxy.url) },
    );
    const lines = () =>
      listener
        .stdout()
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    const forwarded = () => new Set(receiver.received.map(({ body }) => JSON.parse(body).data.message_id));
    const sendAndWait = async () =>
      (await run('send', '--to', 'ada@people.example', '--text', 'x', '--wait')).json as { id: string };
    try {
      await eventually(() => expect(lines()).toHaveLength(1), 20_000);
      const [{ secret }] = lines();
      const sent = [await sendAndWait()];
      await eventually(() => expect(forwarded().size).toBe(1), 20_000);
      await terminate(api.child, 'SIGKILL');
      sent.push(await sendAndWait(), await sendAndWait());
      api = await startFurtherApi({ ...settings, LOG_LEVEL: 'warn' });
      proxy.retarget(api.baseUrl);
      await eventually(() => expect(forwarded()).toEqual(new Set(sent.map(({ id }) => id))), 30_000);
      expect(receiver.received).toHaveLength(3);
      for (const { body, headers } of receiver.received) expect(unwrap(body, headers, secret)).toBeDefined();
      expect(() =>
        unwrap(receiver.received[0]?.body ?? '', receiver.received[0]?.headers ?? {}, 'whsec_b3RoZXI='),
      ).toThrow();
      await eventually(() =>
        expect(
          lines()
            .slice(1)
            .map(({ status }) => status),
        ).toEqual([500, 204, 204]),
      );
      listener.child.kill('SIGINT');
      expect((await listener.ended).exitCode).toBe(130);
    } finally {
      await terminate(api.child);
      await receiver.stop();
    }
  });
});

test('mcp passes messages of a host on, answers what fails, and cancels', async () => {
  const lines = [
    {
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } },
    },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/list' },
    { id: 3, method: 'tools/call', params: { name: 'list_inboxes', arguments: {} } },
    {
      id: 4,
      method: 'tools/call',
      params: {
        name: 'wait_for_message',
        arguments: {
          inbox_id: inbox.id,
          timeout_seconds: 40,
          since: new Date(Date.now() + 3_600_000).toISOString(),
        },
      },
    },
    { method: 'notifications/cancelled', params: { requestId: 4 } },
    { id: 5, method: 'nonsense' },
  ].map((message) => JSON.stringify({ jsonrpc: '2.0', ...message }));
  const { exitCode, stdout, stderr } = await expectWithin(12_000, () =>
    cli.run(['mcp'], { env: environment(), input: `${lines.join('\n')}\nno json\n` }),
  );
  expect([exitCode, stderr]).toEqual([0, '']);
  const answers = new Map(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .map((message) => [message.id, message]),
  );
  expect([...answers.keys()].sort()).toEqual([1, 2, 3, 5, null].sort());
  expect(answers.get(1).result.protocolVersion).toBe('2025-06-18');
  expect(answers.get(2).result.tools.map(({ name }: { name: string }) => name)).toContain('send_message');
  expect(JSON.stringify(answers.get(3).result)).toContain(inbox.id);
  expect(answers.get(5).error).toBeDefined();
});

test.each(['legacy', { pin: '2026-07-28' }] as const)(
  'mcp serves the official client of hosts over standard input and output (%j)',
  async (mode) => {
    const client = new Client({ name: 'host', version: '1' }, { versionNegotiation: { mode } });
    const env = Object.fromEntries(
      Object.entries({ ...cli.environment, ...environment() }).map(([name, value]) => [name, String(value)]),
    );
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: [cli.program, 'mcp'], env }),
    );
    try {
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toContain('wait_for_code');
      const { structuredContent } = await client.callTool({ name: 'list_inboxes', arguments: {} });
      expect(JSON.stringify(structuredContent)).toContain(inbox.id);
    } finally {
      await client.close();
    }
  },
);

test('purge --wait deletes an inbox for good, and asks before', async () => {
  const { id } = (await run('inboxes', 'create')).json as { id: string };
  expect((await run('purge', id)).exitCode).toBe(2);
  expect((await run('purge', id, '--yes', '--wait', '60s')).json).toMatchObject({ id, status: 'purged' });
  expect((await run('inboxes', 'show', id)).exitCode).toBe(1);
});
