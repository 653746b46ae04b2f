import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { generate } from 'selfsigned';
import { run } from '../../clients/cli/src/run.ts';
import { answerJson, problem, ScriptedServer } from '../support/scripted-server.ts';

/** Local times of the tables. */
const ZONE = process.env.TZ;
beforeAll(() => {
  process.env.TZ = 'UTC';
});
afterAll(() => {
  process.env.TZ = ZONE;
});

const MESSAGE = {
  object: 'message',
  id: 'msg_1',
  thread_id: 'thr_1',
  inbox_id: 'inb_1',
  direction: 'inbound',
  status: 'received',
  from: { email: 'ada@people.example', name: 'Ada 你好' },
  to: [{ email: 'agent@agents.example' }],
  subject: 'Your \u202ecode\u001b]0;x\u0007',
  date: '2026-11-23T22:15:00.000Z',
  text: 'The code is 481516.\nBye\u0007',
  codes: [{ value: '481516', raw: '481516', confidence: 'high', context: 'The code is 481516.' }],
  attachments: [{ id: 'att_1', filename: 'a\u001b[2J.pdf', content_type: 'application/pdf', size_bytes: 7 }],
  injection: { level: 'alarm', reasons: [] },
};
const CREDENTIAL = {
  object: 'credential',
  kind: 'api_key',
  id: 'key_1',
  user_id: null,
  org_id: 'org_1',
  permissions: ['inboxes:read', 'domains:read', 'webhooks:read'],
  binding: 'organization',
  env_id: 'env_1',
  is_sandbox: false,
  inbox_id: null,
  suspended: null,
  expires_at: null,
  rate_limit: { requests_per_second: 1, burst: 1 },
  sends: {
    today: { remaining: 0, shared_domain: null, per_inbox: null, resets_at: '2026-11-24T00:00:00.000Z' },
    this_month: { limit: null, kind: 'soft', remaining: null, resets_at: '2026-12-01T00:00:00.000Z' },
  },
};
const page = (...data: object[]) => ({ object: 'list', data, has_more: false, next_cursor: null });

/** What a service with several troubles answers. */
const ANSWERS: Record<string, [number, object, Record<string, string>?]> = {
  '/api/v1/me': [200, CREDENTIAL],
  '/api/v1/messages': [
    200,
    page(MESSAGE, { ...MESSAGE, id: 'msg_2', direction: 'outbound', status: 'sent' }),
  ],
  '/api/v1/messages/msg_1': [200, MESSAGE],
  '/api/v1/domains': [
    200,
    page({ domain_name: 'shop.example', verification_status: 'failed', status_reason: 'No MX record.' }),
  ],
  '/api/v1/webhooks/endpoints': [
    200,
    page({ url: 'https://hook.example/', failing: true, failing_since: '2026-11-23', held_deliveries: 3 }),
  ],
  '/openapi/agent.json': [200, { info: { version: '2' } }, { date: 'Mon, 23 Nov 2020 22:15:00 GMT' }],
};

/** Runs a command against these answers. */
async function runAgainst(
  answers: typeof ANSWERS,
  parameters: string[],
  { isTerminal }: { isTerminal: boolean },
): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  await using server = await ScriptedServer.start((response, { url }) => {
    const [status, body, headers] = answers[url.split('?')[0] ?? ''] ?? [
      404,
      {
        ...problem(404, 'not_found'),
        detail: 'No \u001b[31mmessage.',
        fix: 'Look\u202e.',
        request_id: 'req_1',
      },
    ];
    answerJson(response, status, body, headers);
  });
  return await runAt(server.url, parameters, { isTerminal });
}

async function runAt(url: string, parameters: string[], { isTerminal }: { isTerminal: boolean }) {
  const stream = () => Object.assign(new PassThrough(), { isTTY: isTerminal, columns: 72 });
  const [stdout, stderr] = [stream(), stream()];
  const env = { AGENT_EMAIL_API_KEY: 'ask_live_1', AGENT_EMAIL_BASE_URL: url, HOME: '/nonexistent' };
  const exitCode = await run(parameters, { stdin: Readable.from([]), stdout, stderr, env });
  stdout.end();
  stderr.end();
  const hide = (shown: string) => shown.replaceAll(url, 'URL').replaceAll(/Node [\d.]+/g, 'Node N');
  return { exitCode, stdout: hide(await text(stdout)), stderr: hide(await text(stderr)) };
}

const TERMINAL = { isTerminal: true };
const PIPE = { isTerminal: false };

describe('on a terminal', () => {
  test('messages are a table', async () => {
    expect(await runAgainst(ANSWERS, ['messages'], TERMINAL)).toEqual({
      exitCode: 0,
      stderr: '',
      stdout: [
        'ID     DATE              FROM               SUBJECT             STATUS',
        'msg_1  2026-11-23 22:15  Ada 你好           Your \\u{202e}code…  received',
        'msg_2  2026-11-23 22:15  to agent@agents.…  Your \\u{202e}code…  sent',
        '',
      ].join('\n'),
    });
  });

  test('a message is shown with its warnings before its text', async () => {
    expect((await runAgainst(ANSWERS, ['read', 'msg_1'], TERMINAL)).stdout).toBe(
      [
        'From     Ada 你好 <ada@people.example>',
        'To       agent@agents.example',
        'Subject  Your \\u{202e}code\\u{1b}]0;x\\u{7}',
        'Date     2026-11-23 22:15',
        'Status   received',
        'Message  msg_1',
        'Thread   thr_1',
        'Code     481516',
        'File     a\\u{1b}[2J.pdf (7 bytes, att_1)',
        'Warning  instructions to an agent (alarm)',
        '',
        'The code is 481516.',
        'Bye\\u{7}',
        '',
      ].join('\n'),
    );
  });

  test('an error has code, fix and request id, and what the server says does nothing', async () => {
    expect(await runAgainst(ANSWERS, ['read', 'msg_9'], TERMINAL)).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'Error: No \\u{1b}[31mmessage. (not_found)\nFix: Look\\u{202e}.\nRequest: req_1\n',
    });
  });

  test('a name on the command line does nothing either', async () => {
    const { stderr, exitCode } = await runAgainst(ANSWERS, ['read', 'x', '--\u001b[2J'], TERMINAL);
    expect(exitCode).toBe(2);
    expect(stderr).not.toMatch(/[^\P{Cc}\n]/u);
  });
});

describe('in a pipe', () => {
  test('messages are JSON, whose text is escaped and means the same', async () => {
    const { stdout, exitCode } = await runAgainst(ANSWERS, ['messages', '--limit', '1'], PIPE);
    expect(exitCode).toBe(0);
    expect(stdout).not.toMatch(/[^\P{C}\n]/u);
    expect(JSON.parse(stdout)).toEqual([MESSAGE]);
  });

  test('--json is the same on a terminal', async () => {
    const piped = await runAgainst(ANSWERS, ['read', 'msg_1'], PIPE);
    const shown = await runAgainst(ANSWERS, ['read', 'msg_1', '--json'], TERMINAL);
    expect(shown).toEqual(piped);
  });

  test('an error is one line of JSON', async () => {
    const { stderr, exitCode } = await runAgainst(ANSWERS, ['read', 'msg_9'], PIPE);
    expect(exitCode).toBe(1);
    expect(JSON.parse(stderr)).toEqual({
      error: {
        code: 'not_found',
        message: 'No \u001b[31mmessage.',
        fix: 'Look\u202e.',
        request_id: 'req_1',
        status: 404,
      },
    });
  });
});

describe('doctor names', () => {
  const failing = async (answers: typeof ANSWERS) => {
    const { stdout, exitCode } = await runAgainst(answers, ['doctor'], PIPE);
    const checks = JSON.parse(stdout) as { name: string; result: string; detail: string; fix?: string }[];
    return { exitCode, of: (name: string) => checks.find((check) => check.name === name) };
  };

  test('a clock that is wrong, and another version', async () => {
    const { exitCode, of } = await failing(ANSWERS);
    expect(exitCode).toBe(1);
    expect(of('clock')).toMatchObject({
      result: 'failed',
      detail: expect.stringContaining('ahead of the service'),
    });
    expect(of('version')).toMatchObject({ result: 'warning', detail: expect.stringContaining('version 2') });
  });

  test('missing permissions, spent sends, a domain that is not verified and an endpoint that fails', async () => {
    const { '/openapi/agent.json': _, ...others } = ANSWERS;
    const { exitCode, of } = await failing({
      ...others,
      '/openapi/agent.json': [200, { info: { version: '1' } }],
    });
    expect(exitCode).toBe(1);
    expect(of('clock')).toMatchObject({ result: 'ok' });
    expect(of('permissions')).toMatchObject({
      result: 'warning',
      detail: expect.stringContaining('messages:send'),
    });
    expect(of('sends')).toMatchObject({ result: 'failed', fix: expect.stringContaining('2026-11-24') });
    expect(of('domains')).toMatchObject({
      result: 'failed',
      detail: 'shop.example is failed: No MX record.',
    });
    expect(of('webhooks')).toMatchObject({
      result: 'failed',
      detail: expect.stringContaining('3 deliveries wait'),
    });
  });

  test('a key that the service refuses', async () => {
    const refused: typeof ANSWERS = {
      '/openapi/agent.json': [200, { info: { version: '1' } }],
      '/api/v1/me': [401, problem(401, 'unauthenticated')],
    };
    const { exitCode, of } = await failing(refused);
    expect(exitCode).toBe(3);
    expect(of('credential')).toMatchObject({ result: 'failed' });
  });

  test('an address that is another site, sends requests on, or where nothing listens', async () => {
    const other = await failing({});
    expect(other.of('address')).toMatchObject({
      result: 'failed',
      detail: expect.stringContaining('not as this service'),
    });
    const moved = await failing({ '/openapi/agent.json': [301, {}, { location: 'https://new.example/' }] });
    expect(moved.of('address')).toMatchObject({ detail: expect.stringContaining('https://new.example/') });
    const nobody = JSON.parse((await runAt('http://127.0.0.1:1', ['doctor'], PIPE)).stdout);
    expect(nobody).toContainEqual(expect.objectContaining({ name: 'address', result: 'failed' }));
  });

  test('a certificate that is not valid', async () => {
    const { cert, private: key } = await generate([{ name: 'commonName', value: 'localhost' }]);
    const server = createServer({ cert, key });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `https://localhost:${(server.address() as AddressInfo).port}`;
    const { stdout, exitCode } = await runAt(url, ['doctor'], PIPE);
    server.close();
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toContainEqual(
      expect.objectContaining({
        name: 'tls',
        result: 'failed',
        fix: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
      }),
    );
  });
});
