import { connect as connectSocket } from 'node:net';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { toolsUrl } from '../support/mcp-client.ts';
import { createOrganization } from '../support/organizations.ts';
import { useTestApp } from '../support/resources.ts';
import type { LogLine } from '../support/test-app.ts';

const lines: LogLine[] = [];
const app = useTestApp({
  config: { MCP_ALLOWED_ORIGINS: 'https://host.example', RATE_LIMIT_PER_SECOND: '1000' },
  onLogLine: (line) => lines.push(line),
});
let token: string;
let url: URL;
beforeAll(async () => {
  ({ token } = await createOrganization(app.worker));
  url = await toolsUrl(app);
});

interface Answer {
  status: number;
  head: string;
  body: string;
}

/** Writes a request as it is, since clients of HTTP would mend it. */
function sendRaw(headers: string[], body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const socket = connectSocket(Number(url.port), url.hostname);
    const chunks: Buffer[] = [];
    socket.setTimeout(10_000, () => socket.destroy(new Error('No answer')));
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => {
      const [head = '', ...rest] = Buffer.concat(chunks).toString().split('\r\n\r\n');
      resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]), head, body: rest.join('\r\n\r\n') });
    });
    const length = Buffer.byteLength(body);
    const all = ['POST /mcp HTTP/1.1', ...headers, `content-length: ${length}`, 'connection: close'];
    socket.write(`${all.join('\r\n')}\r\n\r\n${body}`);
  });
}

const usual = () => [
  `host: ${url.host}`,
  `authorization: Bearer ${token}`,
  'content-type: application/json',
  'accept: application/json, text/event-stream',
];
/** The usual headers, but for those of the same names. */
const withHeaders = (...headers: string[]) => {
  const names = headers.map((header) => header.split(':')[0]?.toLowerCase());
  return [...usual().filter((header) => !names.includes(header.split(':')[0])), ...headers];
};
const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

describe('headers', () => {
  test.each([
    ['a host in capitals', ['Host: LOCALHOST:80'], 200],
    ['an own origin', ['Origin: https://host.example'], 200],
    ['two hosts', ['Host: localhost', 'Host: evil.example'], 403],
    ['no host', ['Host:'], 403],
    ['a host with a user', ['Host: evil.example@localhost'], 403],
    ['a host with a path', ['Host: localhost/evil.example'], 403],
    ['a host with a fragment', ['Host: localhost#.evil.example'], 403],
    ['a host with a query', ['Host: localhost?.evil.example'], 403],
    ['a host with a dot at its end', ['Host: localhost.'], 403],
    ['a host in another notation', ['Host: 2130706433'], 403],
    ['a foreign origin in capitals', ['ORIGIN: HTTPS://EVIL.EXAMPLE'], 403],
    ['an allowed origin in capitals', ['Origin: HTTPS://HOST.EXAMPLE'], 403],
    ['two origins', ['Origin: https://host.example', 'Origin: https://evil.example'], 403],
    ['an allowed origin with a path', ['Origin: https://host.example/x'], 403],
    ['an allowed origin with another port', ['Origin: https://host.example:444'], 403],
    ['an origin that ends with an allowed one', ['Origin: https://evilhost.example'], 403],
    ['an origin of this host with a user', ['Origin: http://localhost@evil.example'], 403],
    ['two credentials', ['Authorization: Bearer x', 'Authorization: Bearer y'], 401],
    ['a credential of another scheme', ['Authorization: Basic eDp5'], 401],
    ['no answer that it accepts', ['Accept: image/png'], 406],
    ['an answer as JSON alone', ['Accept: application/json'], 406],
    ['no list of answers', ['Accept:'], 406],
    ['a form', ['Content-Type: application/x-www-form-urlencoded'], 415],
    ['several parts', ['Content-Type: multipart/form-data; boundary=x'], 415],
    ['no content type', ['Content-Type:'], 415],
    ['a type with a parameter', ['Content-Type: application/json; charset=utf-8'], 200],
    ['an unknown revision', ['MCP-Protocol-Version: 2099-01-01'], 400],
    ['a session', ['Mcp-Session-Id: stolen'], 200],
    ['a position to resume from', ['Last-Event-ID: 1'], 200],
    ['a foreign forwarded host', ['X-Forwarded-Host: evil.example'], 200],
  ])('%s: %j is %i', async (_, headers, status) => {
    const answer = await sendRaw(withHeaders(...headers), PING);
    expect({ headers, status: answer.status, body: answer.status === status ? '' : answer.body }).toEqual({
      headers,
      status,
      body: '',
    });
    expect(answer.head).not.toMatch(/mcp-session-id|set-cookie/i);
  });
});

describe('messages', () => {
  const long = 'x'.repeat(500_000);
  const call = (params: string, id = '1') =>
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`;

  test.each([
    ['an id of half a megabyte', `{"jsonrpc":"2.0","id":"${long}","method":"ping"}`],
    ['an id that is null', '{"jsonrpc":"2.0","id":null,"method":"ping"}'],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}'],
    ['an id beyond all numbers', '{"jsonrpc":"2.0","id":1e999,"method":"ping"}'],
    ['a fraction as id', '{"jsonrpc":"2.0","id":1.5,"method":"ping"}'],
    ['an unknown method', '{"jsonrpc":"2.0","id":1,"method":"tools/approve"}'],
    ['the method of a prototype', '{"jsonrpc":"2.0","id":1,"method":"__proto__"}'],
    ['a method of half a megabyte', `{"jsonrpc":"2.0","id":1,"method":"${long}"}`],
    ['a method that is a number', '{"jsonrpc":"2.0","id":1,"method":7}'],
    ['another version', '{"jsonrpc":"1.0","id":1,"method":"ping"}'],
    ['an answer', '{"jsonrpc":"2.0","id":1,"result":{}}'],
    ['an error', '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'],
    ['a notification', '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'],
    ['a call as a notification', '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"whoami"}}'],
    ['a call without parameters', '{"jsonrpc":"2.0","id":1,"method":"tools/call"}'],
    ['a call with a list', call('[]')],
    ['a tool of a prototype', call('{"name":"__proto__"}')],
    ['a tool called constructor', call('{"name":"constructor","arguments":{}}')],
    ['a tool with a name of half a megabyte', call(`{"name":"${long}"}`)],
    ['arguments that are text', call('{"name":"whoami","arguments":"x"}')],
    ['arguments that are a list', call('{"name":"whoami","arguments":[]}')],
    ['arguments that are null', call('{"name":"whoami","arguments":null}')],
    ['a token of progress that is an object', call('{"name":"whoami","_meta":{"progressToken":{"a":1}}}')],
    ['a text of half a megabyte', call(`{"name":"search_messages","arguments":{"q":"${long}"}}`)],
    [
      'keys of a prototype',
      call('{"name":"create_draft","arguments":{"constructor":{"prototype":{"a":1}}}}'),
    ],
    ...['', 'a\r\nx-env-id: env_other', '\u0442', '\ud800', long].map((key) => [
      `the idempotency key ${JSON.stringify(key.slice(0, 30))}`,
      call(
        `{"name":"send_message","arguments":{"inbox_id":"inb_01k0000000000000000000000a","to":["a@people.example"],"subject":"x","idempotency_key":${JSON.stringify(key)}}}`,
      ),
    ]),
    ...['..', '../../me', 'a/b', '%2e%2e', 'a?x=1', 'a#b', '\u0000', '\u{1f600}'].map((id) => [
      `the id ${JSON.stringify(id)}`,
      call(`{"name":"send_draft","arguments":{"draft_id":${JSON.stringify(id)}}}`),
    ]),
    ['a null in place of a list', call('{"name":"update_labels","arguments":{"message_ids":null}}')],
    [
      '200,000 ids',
      call(
        `{"name":"update_labels","arguments":{"message_ids":["${Array(200_000).fill('m').join('","')}"]}}`,
      ),
    ],
    [
      'a name of a resource',
      '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}',
    ],
    ['a sampling request', '{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}'],
    ['a task', '{"jsonrpc":"2.0","id":1,"method":"tasks/list","params":{}}'],
    ['a log level', '{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}'],
    ['a completion', '{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{}}'],
    ['several messages in one body', `${PING}\n${PING}`],
    ['UTF-16', Buffer.from(PING, 'utf16le').toString('latin1')],
    ['a byte order mark', `\ufeff${PING}`],
  ])('%s harms nothing, and is answered', async (_, body) => {
    const answer = await sendRaw(usual(), body);
    expect(answer.status).toBeGreaterThanOrEqual(200);
    expect(answer.status).toBeLessThan(500);
    expect(answer.body).not.toMatch(/at \w+ \(|node_modules|\.ts:\d/);
    expect(answer.body.length).toBeLessThan(1_100_000);
    expect((await sendRaw(usual(), PING)).status).toBe(200);
  });

  test('a call as a notification does nothing', async () => {
    const create = '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"create_inbox","arguments":{}}}';
    await sendRaw(usual(), create);
    const inboxes = await app.call('/inboxes', { token });
    expect(inboxes.json().data).toEqual([]);
  });
});

test('no request of this file made the service report an error of its own', () => {
  expect(lines.filter(({ level }) => level >= 50)).toEqual([]);
});
