import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import { createTransport } from 'nodemailer';
import { levels, pino } from 'pino';
import type { InboundRoute } from '../../domain/inbound/inbound-routes.ts';
import type { NewRefusal } from '../../domain/refusals/refusal-recorder.ts';
import { createServiceMetrics } from '../../platform/service-metrics.ts';
import { createRefusalReports } from '../../workers/report-refusal.ts';
import { eventually } from '../support/eventually.ts';
import { RawSmtpClient } from './raw-smtp-client.ts';
import { cleanUpAfterEach, cleanUps, greeted, listen, ROUTE, SMALL } from './test-listener.ts';

const CERTIFICATE = new URL('../egress/receiver.cert.pem', import.meta.url).pathname;
const KEY = new URL('../egress/receiver.key.pem', import.meta.url).pathname;
const { info: INFO = 0, error: ERROR = 0 } = levels.values;
cleanUpAfterEach();

test('reports the outcome and duration of each message once', async () => {
  const outcomes: string[] = [];
  const seconds: number[] = [];
  let commits = 0;
  const { listener } = await listen({
    receipts: {
      commit: async () => {
        commits += 1;
        if (commits === 2) throw new Error('the database is gone');
      },
    },
    onAnswered: (outcome, took) => {
      outcomes.push(outcome);
      seconds.push(took);
    },
  });
  const transport = createTransport({ host: '127.0.0.1', port: listener.port, ignoreTLS: true });
  const send = (raw: string) =>
    transport.sendMail({ envelope: { from: 'ada@people.example', to: ['agent@agents.test'] }, raw });
  await send('Subject: one\r\n\r\n');
  await expect(send('Subject: two\r\n\r\n')).rejects.toMatchObject({ responseCode: 451 });
  const circles = 'Received: from a by b\r\n'.repeat(60);
  await expect(send(`${circles}Subject: three\r\n\r\n`)).rejects.toMatchObject({ responseCode: 554 });
  expect(outcomes).toEqual(['accepted', 'deferred', 'refused']);
  for (const took of seconds) expect(took).toBeGreaterThan(0);
});

test('reports each refusal once: a log line without addresses, a count, and whom it concerns', async () => {
  const recorded: NewRefusal[] = [];
  const lines: Record<string, unknown>[] = [];
  const metrics = createServiceMetrics();
  const { listener } = await listen({
    receipts: {
      resolve: async (address) =>
        address.startsWith('full')
          ? { kind: 'full', route: ROUTE, limit: 'receive_limit' }
          : address.startsWith('guess')
            ? { kind: 'full', route: ROUTE, limit: 'catch_all_limit' }
            : address.startsWith('nobody')
              ? 'unknown'
              : ROUTE,
    },
    reportRefusal: createRefusalReports({
      direction: 'inbound',
      logger: pino({}, { write: (line) => void lines.push(JSON.parse(line)) }),
      metrics,
      recorder: { record: (refusal) => recorded.push(refusal) },
    }),
  });
  const client = await greeted(listener.port);
  expect(await client.command(`MAIL FROM:<ada@people.example> SIZE=${SMALL + 1}`)).toMatch(/^552/);
  await client.command('MAIL FROM:<ada@people.example>');
  await client.command('RCPT TO:<nobody@agents.test>');
  await client.command('RCPT TO:<full@agents.test>');
  expect(await client.command('RCPT TO:<guess@agents.test>')).toMatch(/^452 4\.7\.0 /);
  await client.command('RCPT TO:<one@agents.test>');
  await client.command('RCPT TO:<two@agents.test>');
  await client.command('DATA');
  client.write(`${'Received: from a by b\r\n'.repeat(60)}\r\n.\r\n`);
  expect(await client.reply()).toMatch(/^554 5\.4\.6/);
  const sender = 'ada@people.example';
  expect(
    recorded.map(({ stage, reason, responseCode, address }) => [stage, reason, responseCode, address]),
  ).toEqual([
    ['rcpt', 'unknown_mailbox', 550, 'nobody@agents.test'],
    ['rcpt', 'receive_limit', 452, 'full@agents.test'],
    ['rcpt', 'catch_all_limit', 452, 'guess@agents.test'],
    ['data', 'too_many_hops', 554, 'one@agents.test'],
    ['data', 'too_many_hops', 554, 'two@agents.test'],
  ]);
  for (const refusal of recorded)
    expect(refusal).toMatchObject({
      direction: 'inbound',
      sender,
      recipient: refusal.address,
      clientIp: '127.0.0.1',
    });
  expect(lines.map(({ msg, stage, reason }) => [msg, stage, reason])).toEqual([
    // The client waited for the reply, so the recipients are not known.
    ['mail refused', 'mail', 'message_too_large'],
    ['mail refused', 'rcpt', 'unknown_mailbox'],
    ['mail refused', 'rcpt', 'receive_limit'],
    ['mail refused', 'rcpt', 'catch_all_limit'],
    ['mail refused', 'data', 'too_many_hops'],
  ]);
  expect(JSON.stringify(lines)).not.toContain('@');
  const counts = (await metrics.refusals.get()).values.map(({ labels, value }) => [labels.reason, value]);
  expect(counts).toEqual([
    ['message_too_large', 1],
    ['unknown_mailbox', 1],
    ['receive_limit', 1],
    ['catch_all_limit', 1],
    ['too_many_hops', 1],
  ]);
});

describe('a message that is too large', () => {
  const arrange = async () => {
    const recorded: NewRefusal[] = [];
    const metrics = createServiceMetrics();
    const { listener } = await listen({
      reportRefusal: createRefusalReports({
        direction: 'inbound',
        logger: pino({ level: 'silent' }),
        metrics,
        recorder: { record: (refusal) => recorded.push(refusal) },
      }),
    });
    const count = async () =>
      (await metrics.refusals.get()).values.map(({ labels, value }) => ({ ...labels, value }));
    return { client: await greeted(listener.port), recorded, count };
  };
  const refusedAt = (stage: string, address: string) => ({
    stage,
    reason: 'message_too_large',
    responseCode: 552,
    sender: 'ada@people.example',
    address,
    recipient: address,
  });

  test('by its declared size is recorded for the recipients that the client sent along', async () => {
    const { client, recorded, count } = await arrange();
    client.write(
      [
        `MAIL FROM:<ada@people.example> SIZE=${SMALL + 1} BODY=8BITMIME`,
        'RCPT TO:<one@agents.test>',
        'rcpt to: <Two@agents.test> NOTIFY=NEVER',
        'DATA',
        'RSET',
        '',
      ].join('\r\n'),
    );
    const replies = [];
    for (let reply = 0; reply < 5; reply += 1) replies.push((await client.reply()).slice(0, 3));
    expect(replies).toEqual(['552', '503', '503', '503', '250']);
    expect(recorded).toMatchObject([
      refusedAt('mail', 'one@agents.test'),
      refusedAt('mail', 'Two@agents.test'),
    ]);
    expect(await count()).toEqual([
      { direction: 'inbound', stage: 'mail', reason: 'message_too_large', value: 1 },
    ]);
    // The next transaction is none of it.
    await client.command('MAIL FROM:<ada@people.example>');
    await client.command('RCPT TO:<one@agents.test>');
    await client.command('RSET');
    expect(recorded).toHaveLength(2);
  });

  test('is recorded, too, if the client then disconnects', async () => {
    const { client, recorded, count } = await arrange();
    client.write(`MAIL FROM:<ada@people.example> SIZE=${SMALL + 1}\r\nRCPT TO:<one@agents.test>\r\n`);
    for (let reply = 0; reply < 2; reply += 1) await client.reply();
    client.close();
    await eventually(() => expect(recorded).toHaveLength(1));
    expect(recorded).toMatchObject([refusedAt('mail', 'one@agents.test')]);
    expect(await count()).toMatchObject([{ value: 1 }]);
  });

  test('by its data is recorded for its recipients', async () => {
    const { client, recorded, count } = await arrange();
    await client.command('MAIL FROM:<ada@people.example>');
    await client.command('RCPT TO:<one@agents.test>');
    await client.command('RCPT TO:<two@agents.test>');
    await client.command('DATA');
    client.write(`Subject: large\r\n\r\n${`${'x'.repeat(76)}\r\n`.repeat(SMALL / 70)}.\r\n`);
    expect(await client.reply()).toMatch(/^552/);
    expect(recorded).toMatchObject([
      refusedAt('data', 'one@agents.test'),
      refusedAt('data', 'two@agents.test'),
    ]);
    expect(await count()).toMatchObject([{ stage: 'data', reason: 'message_too_large', value: 1 }]);
  });
});

describe('accepted mail', () => {
  test('is stored and committed before 250, with the envelope', async () => {
    const order: string[] = [];
    const { listener, objects, committed } = await listen({
      receipts: {
        commit: async (mail) => {
          order.push(objects.has(mail.rawKey) ? 'stored, committing' : 'committing');
          committed.push(mail);
        },
      },
    });
    const transport = createTransport({
      host: '127.0.0.1',
      port: listener.port,
      ignoreTLS: true,
      name: 'sender.test',
    });
    const info = await transport.sendMail({
      envelope: { from: 'Sender@sender.test', to: ['Agent+tag@Agents.Test', 'second@agents.test'] },
      raw: 'Subject: hi\r\n\r\n.dots\r\n..more\r\n',
    });
    order.push('answered');

    expect(order).toEqual(['stored, committing', 'answered']);
    const [mail] = committed;
    expect(mail).toMatchObject({
      rawKey: expect.stringMatching(/^raw\/\d{4}\/\d\d\/\d\d\/rcp_[0-9a-z]{26}\.eml$/),
      mailFrom: 'Sender@sender.test',
      clientIp: '127.0.0.1',
      helo: 'sender.test',
      tls: false,
      recipients: [
        { address: 'agent+tag@agents.test', route: ROUTE },
        { address: 'second@agents.test', route: ROUTE },
      ],
    });
    const bytes = objects.get(mail?.rawKey ?? '') ?? Buffer.alloc(0);
    expect(bytes.toString()).toBe('Subject: hi\r\n\r\n.dots\r\n..more\r\n');
    expect(mail?.sizeBytes).toBe(bytes.length);
    expect(mail?.sha256).toEqual(createHash('sha256').update(bytes).digest());
    expect(info.response).toBe(`250 2.0.0 Ok: queued as ${mail?.rawKey.slice(15, -4)}`);
  });

  test('keeps every byte: 8-bit, bare line feeds, NUL, a dot between bare line feeds', async () => {
    const { listener, objects } = await listen();
    const client = await greeted(listener.port);
    expect(await client.startData('agent@agents.test')).toMatch(/^354 /);
    const message = 'Subject: caf\xe9 \xff\n\nbare\nline\n.\nfeeds\r\n\x00\x80\r\n';
    client.write(`${message}.\r\n`);
    expect(await client.reply()).toMatch(/^250 2\.0\.0 /);
    expect([...objects.values()].map((bytes) => bytes.toString('latin1'))).toEqual([message]);
  });

  test('may have the null sender or a source route, and several may share a session', async () => {
    const { listener, committed } = await listen();
    const client = await greeted(listener.port);
    for (const recipient of ['<@relay.test:agent@agents.test>', '<other@agents.test>']) {
      expect(await client.command('MAIL FROM:<>')).toMatch(/^250/);
      expect(await client.command(`RCPT TO:${recipient}`)).toMatch(/^250/);
      expect(await client.command('DATA')).toMatch(/^354/);
      client.write('Subject: x\r\n\r\n.\r\n');
      expect(await client.reply()).toMatch(/^250/);
    }
    expect(
      committed.map(({ mailFrom, recipients }) => [mailFrom, recipients.map(({ address }) => address)]),
    ).toEqual([
      ['', ['agent@agents.test']],
      ['', ['other@agents.test']],
    ]);
  });

  test('may use TLS if there is a certificate', async () => {
    const config = { INBOUND_SMTP_TLS_KEY_FILE: KEY, INBOUND_SMTP_TLS_CERT_FILE: CERTIFICATE };
    const { listener, committed } = await listen({ config });
    const transport = createTransport({
      host: '127.0.0.1',
      port: listener.port,
      requireTLS: true,
      tls: { rejectUnauthorized: false },
    });
    await transport.sendMail({
      envelope: { from: 'a@b.test', to: 'agent@agents.test' },
      raw: 'Subject: x\r\n\r\n',
    });
    expect(committed[0]?.tls).toBe(true);
  });

  test('is offered only supported extensions', async () => {
    const { listener } = await listen();
    const client = new RawSmtpClient(listener.port);
    cleanUps.push(() => client.close());
    expect(await client.reply()).toMatch(/^220 agents\.test ESMTP/);
    const offered = (await client.command('EHLO x'))
      .split('\r\n')
      .slice(1)
      .map((line) => line.slice(4));
    expect(offered.sort()).toEqual(['8BITMIME', 'PIPELINING', `SIZE ${SMALL}`, 'SMTPUTF8']);
    expect(await client.command('AUTH PLAIN AGEAYg==')).toMatch(/^500/);
  });

  test('to a return path has the route of a report', async () => {
    const report: InboundRoute = { ...ROUTE, kind: 'report', messageId: 'msg_1', recipientPosition: 2 };
    const { listener, committed } = await listen({ receipts: { resolve: async () => report } });
    const client = await greeted(listener.port);
    await client.startData('bounces+token@bounces.agents.test');
    client.write('Subject: failure\r\n\r\n.\r\n');
    expect(await client.reply()).toMatch(/^250/);
    expect(committed[0]?.recipients).toEqual([
      { address: 'bounces+token@bounces.agents.test', route: report },
    ]);
  });
});

describe('rejected mail', () => {
  test('to an unknown address, at RCPT', async () => {
    const { listener, committed } = await listen();
    const client = await greeted(listener.port);
    await client.command('MAIL FROM:<a@b.test>');
    expect(await client.command('RCPT TO:<nobody@agents.test>')).toBe('550 5.1.1 No such mailbox here');
    expect(await client.command('RCPT TO:<agent@elsewhere.test>')).toMatch(/^550 5\.1\.1/);
    expect(await client.command('DATA')).toMatch(/^503/);
    expect(await client.command('RCPT TO:<agent@agents.test>')).toMatch(/^250/);
    expect(committed).toEqual([]);
  });

  test('beyond 100 recipients', async () => {
    const { listener } = await listen();
    const client = await greeted(listener.port);
    await client.command('MAIL FROM:<a@b.test>');
    for (let count = 0; count < 100; count += 1) {
      expect(await client.command(`RCPT TO:<agent${count}@agents.test>`)).toMatch(/^250/);
    }
    expect(await client.command('RCPT TO:<one-more@agents.test>')).toMatch(/^452/);
  });

  test('declared as too large, at MAIL', async () => {
    const { listener } = await listen();
    const client = await greeted(listener.port);
    expect(await client.command(`MAIL FROM:<a@b.test> SIZE=${SMALL + 1}`)).toMatch(/^552/);
    expect(await client.command(`MAIL FROM:<a@b.test> SIZE=${SMALL}`)).toMatch(/^250/);
  });

  test('that turns out to be too large, after its last byte; the session continues', async () => {
    const { listener, objects, committed } = await listen();
    const client = await greeted(listener.port);
    await client.startData('agent@agents.test');
    client.write(`${'x'.repeat(998)}\r\n`.repeat(SMALL / 1000 + 1));
    client.write('.\r\n');
    expect(await client.reply()).toBe(`552 5.3.4 Message is larger than ${SMALL} bytes`);
    expect([objects.size, committed.length]).toEqual([0, 0]);
    expect(await client.startData('agent@agents.test')).toMatch(/^354/);
    client.write(`${'x'.repeat(998)}\r\n`.repeat(SMALL / 1000));
    client.write('.\r\n');
    expect(await client.reply()).toMatch(/^250/);
  });

  test('that never ends, with 421', async () => {
    const { listener, objects } = await listen();
    const client = await greeted(listener.port);
    await client.startData('agent@agents.test');
    client.write(`${'x'.repeat(998)}\r\n`.repeat((SMALL / 1000) * 3));
    expect(await client.reply()).toMatch(/^421 4\.3\.2/);
    expect(await client.reply()).toBe('closed');
    expect(objects.size).toBe(0);
  });

  test('in a mail loop', async () => {
    const { listener, objects, committed } = await listen();
    const client = await greeted(listener.port);
    const hops = (count: number) =>
      'Received: from a by b;\r\n\tMon, 2 Mar 2026 00:00:00 +0000\r\n'.repeat(count);
    await client.startData('agent@agents.test');
    client.write(`${hops(51)}Subject: x\r\n\r\nbody\r\n.\r\n`);
    expect(await client.reply()).toMatch(/^554 5\.4\.6/);
    expect([objects.size, committed.length]).toEqual([0, 0]);
    await client.startData('agent@agents.test');
    client.write(`${hops(50)}Subject: x\r\n\r\n${hops(60)}\r\n.\r\n`);
    expect(await client.reply()).toMatch(/^250/);
  });

  test('in a mail loop, sent byte by byte', async () => {
    const { listener } = await listen();
    const client = await greeted(listener.port);
    client.socket.setNoDelay(true);
    await client.startData('agent@agents.test');
    for (const character of `${'ReCeIvEd: x\n'.repeat(51)}\n.\r\n`) client.write(character);
    client.write('\r\n.\r\n');
    expect(await client.reply()).toMatch(/^554 5\.4\.6/);
  });

  test('beyond the connection limit', async () => {
    const { listener } = await listen({ config: { INBOUND_SMTP_MAX_CONNECTIONS: 1 } });
    const first = await greeted(listener.port);
    const second = new RawSmtpClient(listener.port);
    cleanUps.push(() => second.close());
    expect(await second.reply()).toMatch(/^421/);
    expect(await second.reply()).toBe('closed');
    first.close();
  });
});

describe('failures', () => {
  const boom = async () => Promise.reject(new Error('it is down'));

  test('a failed recipient lookup results in 451', async () => {
    const { listener } = await listen({ receipts: { resolve: boom } });
    const client = await greeted(listener.port);
    await client.command('MAIL FROM:<a@b.test>');
    expect(await client.command('RCPT TO:<agent@agents.test>')).toMatch(/^451 4\.3\.0/);
  });

  test.each([
    ['storage fails immediately', { storage: { putStream: boom } }],
    [
      'storage fails midway',
      {
        storage: {
          async putStream(_key: string, source: Readable) {
            for await (const _chunk of source) throw new Error('it broke');
            throw new Error('no byte came');
          },
        },
      },
    ],
    ['the database fails', { receipts: { commit: boom } }],
  ])('%s: replies 451 after the last byte, cleans up and continues the session', async (_what, broken) => {
    const { listener, objects, committed } = await listen(broken);
    const client = await greeted(listener.port);
    await client.startData('agent@agents.test');
    client.write('Subject: x\r\n\r\n');
    client.write(`${'x'.repeat(998)}\r\n`.repeat(150));
    client.write('.\r\n');
    expect(await client.reply()).toBe('451 4.3.0 Temporary failure, try again later');
    expect([objects.size, committed.length]).toEqual([0, 0]);
    expect(await client.command('NOOP')).toMatch(/^250/);
  });

  test('a commit with an unknown result: replies 451 and keeps the object', async () => {
    const commit = () => Promise.reject(new Error('Connection terminated unexpectedly'));
    const { listener, objects } = await listen({ receipts: { commit } });
    const client = await greeted(listener.port);
    await client.startData('agent@agents.test');
    client.write('Subject: x\r\n\r\n.\r\n');
    expect(await client.reply()).toMatch(/^451/);
    expect(objects.size).toBe(1);
  });

  test('an object that cannot be deleted does not change the reply', async () => {
    const { listener } = await listen({ receipts: { commit: boom }, storage: { delete: boom } });
    const client = await greeted(listener.port);
    await client.startData('agent@agents.test');
    client.write('x\r\n.\r\n');
    expect(await client.reply()).toMatch(/^451/);
  });

  test('a client that disconnects leaves nothing behind and logs no error', async () => {
    let uploads = 0;
    let failed = 0;
    const { listener, committed, logged } = await listen({
      storage: {
        async putStream(_key: string, source: Readable) {
          uploads += 1;
          try {
            return { sizeBytes: (await buffer(source)).length, sha256: Buffer.alloc(32) };
          } catch (error) {
            failed += 1;
            throw error;
          }
        },
      },
    });
    const client = await greeted(listener.port);
    await client.startData('agent@agents.test');
    client.write('Subject: x\r\n\r\nhalf a');
    await eventually(() => expect(uploads).toBe(1));
    client.close();
    await eventually(() => expect(failed).toBe(1));
    await listener.close();
    expect(committed).toEqual([]);
    expect(logged.filter(({ level }) => level > INFO)).toEqual([]);
    expect(logged).toContainEqual(
      expect.objectContaining({ level: INFO, msg: 'client disconnected within a message' }),
    );
  });

  test('a storage failure is an error even if the client disconnects afterwards', async () => {
    const { listener, logged } = await listen({ storage: { putStream: boom } });
    const client = await greeted(listener.port);
    await client.startData('agent@agents.test');
    client.write('Subject: x\r\n\r\nhalf a');
    client.close();
    await eventually(() =>
      expect(logged).toContainEqual(
        expect.objectContaining({ level: ERROR, msg: 'could not accept a message' }),
      ),
    );
  });
});

describe('closing', () => {
  test('completes the current transaction, rejects the next, and disconnects', async () => {
    const reached = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const { listener } = await listen({
      receipts: {
        async commit() {
          reached.resolve();
          await release.promise;
        },
      },
    });
    const busy = await greeted(listener.port);
    const idle = await greeted(listener.port);
    await busy.startData('agent@agents.test');
    busy.write('Subject: x\r\n\r\n.\r\n');
    await reached.promise;
    const closed = listener.close();
    release.resolve();
    expect(await busy.reply()).toMatch(/^250 2\.0\.0/);
    expect(await busy.reply()).toMatch(/^421/);
    expect(await idle.reply()).toMatch(/^421/);
    await closed;
    const late = new RawSmtpClient(listener.port);
    const [error] = await once(late.socket, 'error');
    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
  });
});

describe('a recipient that accepts only authenticated mail of the sender', () => {
  test.each([
    ['authenticated', /^250 /, []],
    ['unauthenticated', /^550 5\.7\.1 /, ['sender_unauthenticated']],
    ['undetermined', /^451 4\.4\.3 /, ['temporary_failure']],
  ] as const)('decides after the data: %s', async (checked, reply, refusals) => {
    const recorded: NewRefusal[] = [];
    const { listener, objects, committed } = await listen({
      receipts: { checkSender: async () => checked },
      reportRefusal: createRefusalReports({
        direction: 'inbound',
        logger: pino({ level: 'silent' }),
        metrics: createServiceMetrics(),
        recorder: { record: (refusal) => recorded.push(refusal) },
      }),
    });
    const client = await greeted(listener.port);
    await client.command('MAIL FROM:<ada@people.example>');
    expect(await client.command('RCPT TO:<agent@agents.test>')).toMatch(/^250/);
    await client.command('DATA');
    client.write('Subject: Hi\r\n\r\nHello\r\n.\r\n');
    expect(await client.reply()).toMatch(reply);
    const isAccepted = checked === 'authenticated';
    expect([committed.length, objects.size]).toEqual(isAccepted ? [1, 1] : [0, 0]);
    expect(recorded.map(({ reason }) => reason)).toEqual(refusals);
  });

  test('gets a transaction of its own', async () => {
    const { listener } = await listen({
      receipts: { resolve: async (address) => (address.startsWith('strict') ? 'separately' : ROUTE) },
    });
    const client = await greeted(listener.port);
    await client.command('MAIL FROM:<ada@people.example>');
    await client.command('RCPT TO:<one@agents.test>');
    expect(await client.command('RCPT TO:<strict@agents.test>')).toMatch(/^452 4\.5\.3 /);
  });
});
