import { Readable } from 'node:stream';
import { afterEach, describe, expect, test } from '@jest/globals';
import type { Transmission, TransmissionResult } from '../../platform/mail-transport/mail-transport.ts';
import { redactAddresses } from '../../platform/mail-transport/mail-transport.ts';
import {
  createSmtpTransport,
  type SmtpTransportConfig,
} from '../../platform/mail-transport/smtp-transport.ts';
import { eventually } from '../support/eventually.ts';
import { type Script, ScriptedSmtpServer } from './scripted-smtp-server.ts';

const SHORT = Buffer.from('Subject: hello\r\n\r\n.starts with a dot\r\ncaf\u00e9\r\n', 'latin1');
/** Larger than the kernel buffers of both sides, so that a drop in the middle leaves part of it unread. */
const LONG = Buffer.concat([
  Buffer.from('Subject: long\r\n\r\n'),
  Buffer.from(`${'x'.repeat(76)}\r\n`.repeat(250_000)),
]);
/** Only silence lasts for the whole timeout; other failures are detected immediately, even on a busy machine. */
const LONG_TIMEOUTS = { connectMs: 10_000, greetingMs: 10_000, idleMs: 10_000 };
/** The server reads a long message in the same process. */
const SHORT_TIMEOUTS = {
  short: { connectMs: 10_000, greetingMs: 800, idleMs: 800 },
  long: { connectMs: 10_000, greetingMs: 3_000, idleMs: 3_000 },
};
const EXTENSIONS = ['8BITMIME', 'SIZE 50000000', 'DSN', 'ENHANCEDSTATUSCODES'];

const cleanUps: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

function transportTo(port: number, overrides: Partial<SmtpTransportConfig> = {}, timeouts = LONG_TIMEOUTS) {
  const transport = createSmtpTransport(
    {
      SMTP_RELAY_HOST: '127.0.0.1',
      SMTP_RELAY_PORT: port,
      SMTP_RELAY_TLS: 'opportunistic',
      SMTP_RELAY_INSECURE_AUTH: false,
      SMTP_RELAY_POOL_SIZE: 2,
      MAIL_DOMAIN: 'agents.test',
      ...overrides,
    },
    timeouts,
  );
  cleanUps.push(() => transport.close());
  return transport;
}

async function relay(script: Script, overrides: Partial<SmtpTransportConfig> = {}, timeouts = LONG_TIMEOUTS) {
  const server = new ScriptedSmtpServer({ extensions: EXTENSIONS, ...script });
  const port = await server.listen();
  const transport = transportTo(port, overrides, timeouts);
  cleanUps.push(() => server.close());
  return { server, transport };
}

function transmission(raw: Buffer, overrides: Partial<Transmission> = {}): Transmission {
  return {
    sender: 'bounces+token@bounces.agents.test',
    recipient: 'someone@example.com',
    openRaw: async () => Readable.from(chunks(raw)),
    sizeBytes: raw.length,
    envelopeId: 'msg_01.0',
    ...overrides,
  };
}

function* chunks(raw: Buffer): Generator<Buffer> {
  for (let start = 0; start < raw.length; start += 65_536) yield raw.subarray(start, start + 65_536);
}

/** The result's `kind`, with the scope of a refusal. */
function outcomeOf(result: TransmissionResult): string {
  return result.kind === 'refused' ? `refused ${result.scope}` : result.kind;
}

interface Case extends Script {
  raw?: Buffer;
  expected: string;
  statusCode?: string | null;
  /** Number of complete messages the relay received; never more than 1. */
  completed?: number;
}

const BROKEN_CONNECTIONS: Case[] = (['drop', 'finish', 'reset', 'hang'] as const).flatMap(
  (deviation): Case[] => [
    { step: 'connect', deviation, expected: 'deferred' },
    { step: 'ehlo', deviation, expected: 'deferred' },
    { step: 'mail', deviation, expected: 'deferred' },
    { step: 'rcpt', deviation, expected: 'deferred' },
    { step: 'data', deviation, expected: 'deferred' },
    { step: 'body', deviation, raw: LONG, expected: 'deferred' },
    { step: 'dot', deviation, expected: 'ambiguous', completed: 1 },
    { step: 'dot', deviation, raw: LONG, expected: 'ambiguous', completed: 1 },
    { step: 'answered', deviation, expected: 'accepted', completed: 1 },
  ],
);

const SERVER_REPLIES: Case[] = [
  { step: 'connect', deviation: '421 4.3.2 busy', expected: 'deferred', statusCode: '4.3.2' },
  { step: 'connect', deviation: '554 5.7.1 no service for you', expected: 'deferred', statusCode: '5.7.1' },
  { step: 'ehlo', deviation: '421 4.3.2 busy', expected: 'deferred' },
  { step: 'ehlo', deviation: '550 5.7.1 bad name', expected: 'deferred' },
  { step: 'mail', deviation: '451 4.3.0 later', expected: 'deferred', statusCode: '4.3.0' },
  { step: 'mail', deviation: '550 5.7.1 sender refused', expected: 'refused message', statusCode: '5.7.1' },
  { step: 'mail', deviation: '530 5.7.0 log in first', expected: 'deferred', statusCode: '5.7.0' },
  { step: 'mail', deviation: '503 5.5.1 bad sequence', expected: 'deferred', statusCode: '5.5.1' },
  { step: 'rcpt', deviation: '450 4.2.0 greylisted', expected: 'deferred', statusCode: '4.2.0' },
  { step: 'rcpt', deviation: '421 4.7.0 too many', expected: 'deferred', statusCode: '4.7.0' },
  { step: 'rcpt', deviation: '550 5.1.1 unknown', expected: 'refused recipient', statusCode: '5.1.1' },
  { step: 'rcpt', deviation: '550 unknown', expected: 'refused recipient', statusCode: '5.0.0' },
  {
    step: 'rcpt',
    deviation: '550-5.1.1 The account\r\n550-5.1.1 does not\r\n550 5.1.1 exist',
    expected: 'refused recipient',
    statusCode: '5.1.1',
  },
  { step: 'data', deviation: '451 4.3.0 no room', expected: 'deferred', statusCode: '4.3.0' },
  { step: 'data', deviation: '554 5.6.0 refused', expected: 'refused message', statusCode: '5.6.0' },
  { step: 'dot', deviation: '451 4.3.0 later', expected: 'deferred', statusCode: '4.3.0', completed: 1 },
  { step: 'dot', deviation: '421 4.3.2 closing', expected: 'deferred', statusCode: '4.3.2', completed: 1 },
  {
    step: 'dot',
    deviation: '550 5.7.1 spam',
    expected: 'refused message',
    statusCode: '5.7.1',
    completed: 1,
  },
  {
    step: 'dot',
    deviation: '552-too\r\n552 big',
    expected: 'refused message',
    statusCode: '5.0.0',
    completed: 1,
  },
  { step: 'dot', deviation: '354 what?', expected: 'ambiguous', completed: 1 },
  { step: 'dot', deviation: '250-half a reply', expected: 'ambiguous', completed: 1 },
];

describe.each([
  ['one command at a time', EXTENSIONS],
  ['pipelined', [...EXTENSIONS, 'PIPELINING']],
])('a failing SMTP session, %s', (_name, extensions) => {
  test.each([...BROKEN_CONNECTIONS, ...SERVER_REPLIES].map((row) => [nameOf(row), row] as const))(
    '%s',
    async (_row, row) => {
      const script = { extensions, step: row.step, deviation: row.deviation };
      const isSilent = row.deviation === 'hang' || row.deviation === '250-half a reply';
      const timeouts = isSilent ? SHORT_TIMEOUTS[row.raw ? 'long' : 'short'] : LONG_TIMEOUTS;
      const { server, transport } = await relay(script, {}, timeouts);

      const result = await transport.transmit(transmission(row.raw ?? SHORT));

      expect(outcomeOf(result)).toBe(row.expected);
      if (row.statusCode !== undefined) expect(result).toMatchObject({ statusCode: row.statusCode });
      await transport.close();
      expect(server.completedMessages).toHaveLength(row.completed ?? 0);
      expect(server.connections).toBe(1);
    },
  );
});

function nameOf({ step, deviation, raw, expected }: Case): string {
  return `${deviation?.replace(/\r\n/g, ' ')} at ${step}${raw ? ' of a long message' : ''} → ${expected}`;
}

describe('a successful SMTP session', () => {
  test('transfers the stored bytes, including dots and 8-bit, and requests reports', async () => {
    const { server, transport } = await relay({});

    const result = await transport.transmit(transmission(SHORT));

    expect(result).toEqual({
      kind: 'accepted',
      providerMessageId: '4XYZ123',
      response: '250 2.0.0 Ok: queued as 4XYZ123',
      reportsDelivery: true,
    });
    const unstuffed = Buffer.from(
      server.completedMessages[0]?.toString('latin1').replace(/^\.\./gm, '.') ?? '',
      'latin1',
    );
    expect(unstuffed).toEqual(SHORT);
    expect(server.commands).toEqual([
      'EHLO agents.test',
      `MAIL FROM:<bounces+token@bounces.agents.test> BODY=8BITMIME SIZE=${SHORT.length} RET=HDRS ENVID=msg_01.0`,
      'RCPT TO:<someone@example.com> NOTIFY=SUCCESS,FAILURE,DELAY ORCPT=rfc822;someone@example.com',
      'DATA',
    ]);
  });

  test('requests no report with reports: never', async () => {
    const { server, transport } = await relay({});
    await transport.transmit({ ...transmission(SHORT), reports: 'never' });
    expect(server.commands.slice(1, 3)).toEqual([
      `MAIL FROM:<bounces+token@bounces.agents.test> BODY=8BITMIME SIZE=${SHORT.length}`,
      'RCPT TO:<someone@example.com> NOTIFY=NEVER',
    ]);
  });

  test('requests and expects no report from a relay without DSN', async () => {
    const { server, transport } = await relay({ extensions: [] });

    const result = await transport.transmit(transmission(SHORT));

    expect(result).toMatchObject({ kind: 'accepted', reportsDelivery: false });
    expect(server.commands.slice(1, 3)).toEqual([
      'MAIL FROM:<bounces+token@bounces.agents.test>',
      'RCPT TO:<someone@example.com>',
    ]);
  });

  test('reuses a connection', async () => {
    const { server, transport } = await relay({});
    for (let count = 0; count < 3; count += 1) {
      expect((await transport.transmit(transmission(SHORT))).kind).toBe('accepted');
    }
    expect(server.connections).toBe(1);
    expect(server.completedMessages).toHaveLength(3);
  });

  test('continues on the same connection after a refused recipient', async () => {
    const refusing: Script = { step: 'rcpt', deviation: '550 5.1.1 unknown' };
    const { server, transport } = await relay(refusing, { SMTP_RELAY_POOL_SIZE: 1 });
    for (let count = 0; count < 2; count += 1) {
      expect(outcomeOf(await transport.transmit(transmission(SHORT)))).toBe('refused recipient');
    }
    expect(server.connections).toBe(1);
  });

  test('reconnects when the relay closed the connection after the last message', async () => {
    const { server, transport } = await relay({ step: 'answered', deviation: 'finish' });
    expect((await transport.transmit(transmission(SHORT))).kind).toBe('accepted');
    await server.hungUp();
    expect((await transport.transmit(transmission(SHORT))).kind).toBe('accepted');
    expect(server.completedMessages).toHaveLength(2);
  });

  test('turns bare line feeds into CRLF', async () => {
    const { server, transport } = await relay({});
    await transport.transmit(transmission(Buffer.from('Subject: x\n\nline\n.\nend\n')));
    expect(server.completedMessages[0]?.toString()).toBe('Subject: x\r\n\r\nline\r\n..\r\nend\r\n');
  });

  test.each([
    ['250 OK id=1sAbCd-000000001-Xy12', '1sAbCd-000000001-Xy12'],
    ['250 2.6.0 <a@b> [InternalId=4711, Hostname=x] Queued mail for delivery', '4711'],
    [
      '250 Ok 0100018b5c3c0a4f-0a1b2c3d-1111-2222-3333-444455556666-000000',
      '0100018b5c3c0a4f-0a1b2c3d-1111-2222-3333-444455556666-000000',
    ],
    ['250-2.0.0 first line\r\n250 2.0.0 Ok: queued as 77AA', '77AA'],
    ['250 thanks', null],
  ])('parses the queue id from %j', async (finalAnswer, expected) => {
    const { transport } = await relay({ finalAnswer });
    expect(await transport.transmit(transmission(SHORT))).toMatchObject({ providerMessageId: expected });
  });
});

describe('local failures', () => {
  test('defer the message when the relay is not listening', async () => {
    const server = new ScriptedSmtpServer();
    const port = await server.listen();
    await server.close();
    expect(outcomeOf(await transportTo(port).transmit(transmission(SHORT)))).toBe('deferred');
  });

  test.each([
    ['cannot be opened', async () => Promise.reject(new Error('storage is down'))],
    ['fails halfway', async () => Readable.from(failing())],
    ['is truncated', async () => Readable.from([SHORT.subarray(0, 10)])],
    ['is longer than recorded', async () => Readable.from([SHORT, SHORT])],
  ])('never complete a stored message that %s', async (_name, openRaw) => {
    const { server, transport } = await relay({});
    const result = await transport.transmit(transmission(SHORT, { openRaw }));
    expect(outcomeOf(result)).toBe('deferred');
    await transport.close();
    expect(server.completedMessages).toHaveLength(0);
  });

  test('refuse a message over the relay’s SIZE before sending a command', async () => {
    const { server, transport } = await relay({ extensions: ['SIZE 10'] });
    const result = await transport.transmit(transmission(SHORT));
    expect(result).toMatchObject({ kind: 'refused', scope: 'message', statusCode: '5.3.4' });
    expect(server.commands).toEqual(['EHLO agents.test']);
  });

  test('refuse an address that SMTP does not support before sending a command', async () => {
    const { server, transport } = await relay({});
    const result = await transport.transmit(transmission(SHORT, { recipient: 'a\r\nDATA@example.com' }));
    expect(result).toMatchObject({ kind: 'refused', scope: 'recipient', statusCode: '5.1.3' });
    expect(server.commands).toEqual(['EHLO agents.test']);
  });

  test('defer an aborted wait before the message is transferred and make it ambiguous afterwards', async () => {
    const before = await relay({ step: 'data', deviation: 'hang' });
    const early = AbortSignal.timeout(100);
    expect(outcomeOf(await before.transport.transmit(transmission(SHORT, { signal: early })))).toBe(
      'deferred',
    );

    const after = await relay({ step: 'dot', deviation: 'hang' });
    const late = new AbortController();
    const transmitted = after.transport.transmit(transmission(SHORT, { signal: late.signal }));
    await eventually(() => expect(after.server.completedMessages).toHaveLength(1));
    late.abort();
    expect(outcomeOf(await transmitted)).toBe('ambiguous');
  });

  test('defer the message when a relay offers no TLS but TLS is required', async () => {
    const server = new ScriptedSmtpServer({ extensions: EXTENSIONS });
    const port = await server.listen();
    cleanUps.push(() => server.close());
    const transport = transportTo(port, { SMTP_RELAY_TLS: 'required' });
    expect(outcomeOf(await transport.transmit(transmission(SHORT)))).toBe('deferred');
    expect(server.commands).not.toContainEqual(expect.stringMatching(/^MAIL/));
  });

  test('closing completes transmissions in flight and rejects new ones', async () => {
    const { server, transport } = await relay({});
    const transmitted = transport.transmit(transmission(LONG));
    await eventually(() => expect(server.commands).toContain('DATA'));
    await transport.close();
    expect((await transmitted).kind).toBe('accepted');
    expect(server.completedMessages).toHaveLength(1);
    expect(outcomeOf(await transport.transmit(transmission(SHORT)))).toBe('deferred');
  });
});

async function* failing(): AsyncGenerator<Buffer> {
  yield SHORT.subarray(0, 10);
  throw new Error('storage went away');
}

test.each([
  ['550 5.1.1 <some.one+tag@example.com>: no such user', '550 5.1.1 <<redacted>>: no such user'],
  ['450 user@[192.0.2.1] later', '450 <redacted> later'],
  ['550 müller@exämple.de unbekannt', '550 <redacted> unbekannt'],
  ['250 2.0.0 Ok: queued as 4XYZ', '250 2.0.0 Ok: queued as 4XYZ'],
])('redacts the addresses in %j', (response, expected) => {
  expect(redactAddresses(response)).toBe(expected);
});
