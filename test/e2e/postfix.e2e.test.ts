import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import nodemailer from 'nodemailer';
import pg from 'pg';
import { findFreePort } from '../../dev/stack/ports.ts';
import { createStorage, type Storage } from '../../platform/storage.ts';
import { apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { type IsolatedService, startIsolatedService } from '../support/isolated-service.ts';
import { findPostfixObstacle, type Postfix, startPostfix } from '../support/postfix.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

jest.setTimeout(60_000);
const TIMEOUT_MS = 20_000;

const obstacle = findPostfixObstacle();
if (obstacle) process.stderr.write(`The test with a real Postfix is skipped: ${obstacle}.\n`);

interface BounceEvent {
  type: string;
  data: {
    message_id: string;
    bounce_type: string;
    bounce_sub_type: string;
    bounced_recipients: { email_address: string; status: string; diagnostic_code: string }[];
  };
}

(obstacle ? describe.skip : describe)('Postfix as the relay', () => {
  let service: IsolatedService;
  let postfix: Postfix;
  let relayPort: number;
  let call: Call;
  let storage: Storage;
  let database: pg.Client;
  const receiver = new WebhookReceiver();

  beforeAll(async () => {
    relayPort = await findFreePort();
    service = await startIsolatedService({ SMTP_RELAY_PORT: String(relayPort) });
    const { MAIL_DOMAIN, BOUNCE_DOMAIN } = service.config;
    postfix = await startPostfix({
      port: relayPort,
      mailboxDomain: 'people.example',
      mailboxes: ['ada', 'grace', 'bytes'],
      refusals: {
        'refused@people.example': '550 5.1.1 no such user',
        'later@people.example': '450 4.7.1 greylisted',
      },
      routes: { 'busy@people.example': 'retry:4.2.1 mailbox busy' },
      passedOn: { domains: [MAIL_DOMAIN, BOUNCE_DOMAIN ?? ''], port: service.inboundPort },
    });
    call = apiClient({ base_url: service.baseUrl }, service.apiKey);
    storage = createStorage(service.config);
    database = new pg.Client({ connectionString: service.ownerDatabaseUrl });
    await database.connect();
    await call('POST', '/webhooks/endpoints', {
      url: await receiver.start(),
      events: ['message.delivered', 'message.bounced'],
    });
  });

  afterAll(async () => {
    storage?.close();
    await database?.end();
    await postfix?.stop();
    await service?.stop();
    await receiver.stop();
  });

  async function send(to: string, content: object = { text_body: 'Hello.' }) {
    const inbox = await call('POST', '/inboxes', { display_name: 'Agent' });
    const { status, body } = await call('POST', `/inboxes/${inbox.body.id}/messages`, {
      to: [{ email: to }],
      subject: 'Hello',
      ...content,
    });
    expect(status).toBe(201);
    return { inbox: inbox.body, message: body };
  }

  const untilStatus = (id: string, status: string) =>
    eventually(async () => {
      const { body } = await call('GET', `/messages/${id}`);
      expect(body.status).toBe(status);
      return body;
    }, TIMEOUT_MS);

  const eventOf = (id: string, type: string) =>
    eventually(() => {
      const events = receiver.received.map(({ body }) => JSON.parse(body) as BounceEvent);
      const found = events.filter((event) => event.data.message_id === id);
      expect(found.map((event) => event.type)).toEqual([type]);
      return (found[0] as BounceEvent).data;
    }, TIMEOUT_MS);

  test('accepts a mailbox: sent, then delivered by Postfix’s report to the signed return path', async () => {
    const { message } = await send('ada@people.example');
    const delivered = await untilStatus(message.id, 'delivered');
    expect(delivered).toMatchObject({
      sent_at: expect.any(String),
      recipients: [{ email: 'ada@people.example', status: 'delivered', status_code: '2.0.0' }],
    });
    await eventOf(message.id, 'message.delivered');
    const { rows } = await database.query(
      `select r.kind, r.mail_from, r.rcpt_to, a.response from inbound_receipts r
       join send_attempts a on a.message_id = r.message_id where r.message_id = $1`,
      [message.id],
    );
    expect(rows).toEqual([
      {
        kind: 'report',
        mail_from: '',
        rcpt_to: expect.stringMatching(/^bounces\+[a-z2-7]{45}@bounces\.agents\.example$/),
        response: expect.stringMatching(/^250 2\.0\.0 Ok: queued as \w+$/),
      },
    ]);
    const [mail] = postfix.mails('ada');
    expect(mail?.toString('latin1')).toContain(`Return-Path: <${rows[0].rcpt_to}>\n`);
  });

  test('bounces an unknown mailbox later: bounced, Permanent, NoEmail', async () => {
    const { message } = await send('unknown@people.example');
    await untilStatus(message.id, 'bounced');
    expect(await eventOf(message.id, 'message.bounced')).toMatchObject({
      bounce_type: 'Permanent',
      bounce_sub_type: 'NoEmail',
      bounced_recipients: [
        {
          email_address: 'unknown@people.example',
          status: '5.1.1',
          diagnostic_code: expect.stringContaining('unknown user'),
        },
      ],
    });
    expect(postfix.log()).toMatch(/to=<unknown@people\.example>.* status=bounced/);
  });

  test('refuses a recipient: bounced immediately, without waiting for a report', async () => {
    const { message } = await send('refused@people.example');
    const bounced = await untilStatus(message.id, 'bounced');
    expect(bounced.recipients).toEqual([
      expect.objectContaining({ status: 'bounced', status_code: '5.1.1' }),
    ]);
    expect(await eventOf(message.id, 'message.bounced')).toMatchObject({
      bounce_type: 'Permanent',
      bounce_sub_type: 'NoEmail',
    });
    const { rows } = await database.query('select tracked, sent_at from messages where id = $1', [
      message.id,
    ]);
    expect(rows).toEqual([{ tracked: false, sent_at: null }]);
  });

  test('defers a recipient: deferred, then canceled on request', async () => {
    const { message } = await send('later@people.example');
    const deferred = await untilStatus(message.id, 'deferred');
    expect(deferred.recipients).toEqual([
      expect.objectContaining({ status: 'deferred', status_code: '4.7.1' }),
    ]);
    expect((await call('POST', `/messages/${message.id}/cancel`)).status).toBe(200);
    await untilStatus(message.id, 'canceled');
  });

  test('gives up on a busy mailbox: sent with a delay report, then bounced, Transient', async () => {
    const { message } = await send('busy@people.example');
    await eventually(async () => {
      const { body } = await call('GET', `/messages/${message.id}`);
      expect(body).toMatchObject({
        status: 'sent',
        recipients: [{ status: 'sent', diagnostic_code: expect.stringContaining('mailbox busy') }],
      });
    }, TIMEOUT_MS);
    await untilStatus(message.id, 'bounced');
    expect(await eventOf(message.id, 'message.bounced')).toMatchObject({
      bounce_type: 'Transient',
      bounce_sub_type: 'General',
      bounced_recipients: [{ status: '4.2.1' }],
    });
  });

  test('delivers the stored bytes unchanged below the trace fields and the report token', async () => {
    const { message } = await send('bytes@people.example', {
      subject: 'Grüße, 世界',
      text_body: `.\r\n..\r\n.dot\r\nFrom here\r\nGrüße 世界\r\n${'long '.repeat(1_000)}\r\n\ttab \r\n.\r\n`,
      html_body: `<p>${'ä'.repeat(3_000)}</p>\n.\n<p>.</p>`,
    });
    await untilStatus(message.id, 'delivered');
    const { rows } = await database.query('select raw_key from messages where id = $1', [message.id]);
    const stored = await storage.getBytes(rows[0].raw_key, 1_000_000);
    const [mail = Buffer.alloc(0)] = postfix.mails('bytes');
    // A maildir uses the line endings of its system.
    const arrived = mail.toString('latin1').replaceAll('\n', '\r\n');
    const trace = arrived.slice(0, arrived.length - stored.length);
    expect(arrived.slice(trace.length)).toBe(stored.toString('latin1'));
    expect(trace).toMatch(
      /^Return-Path: .*\r\nX-Original-To: .*\r\nDelivered-To: .*\r\nReceived: from (.*\r\n[ \t])*.*\r\nX-Report-Token: bounces\+.*\r\n$/,
    );
  });

  test('passes on a reply by sendmail and one by SMTP with 8-bit bytes to the thread', async () => {
    const { inbox, message } = await send('grace@people.example');
    const { rfc_message_id } = await untilStatus(message.id, 'delivered');
    await postfix.submit(
      { from: 'grace@people.example', to: inbox.email },
      `From: Grace <grace@people.example>\nTo: ${inbox.email}\nSubject: Re: Hello\nIn-Reply-To: <${rfc_message_id}>\n\nTyped.\n.\nStill typed.\n`,
    );
    const relay = nodemailer.createTransport({ host: '127.0.0.1', port: relayPort, ignoreTLS: true });
    await relay.sendMail({
      envelope: { from: 'grace@people.example', to: inbox.email, use8BitMime: true },
      raw: Buffer.from(
        `From: Grace <grace@people.example>\r\nTo: ${inbox.email}\r\nSubject: AW: Hello\r\nReferences: <${rfc_message_id}>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: 8bit\r\n\r\n.Gr\xfc\xdfe\r\n`,
        'latin1',
      ),
    });
    relay.close();
    const texts = await eventually(async () => {
      const { body } = await call('GET', `/inboxes/${inbox.id}/messages?direction=inbound`);
      expect(body.data.map(({ thread_id }) => thread_id)).toEqual([message.thread_id, message.thread_id]);
      return Promise.all(
        body.data.map(async ({ id }) => (await call('GET', `/messages/${id}`)).body.extracted_text),
      );
    }, TIMEOUT_MS);
    expect(texts.sort()).toEqual(['.Grüße', 'Typed.\n.\nStill typed.']);
  });
});
