import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createTransport } from 'nodemailer';
import { SMTPServer } from 'smtp-server';
import { type MailUi, startMailUi } from '../../dev/stack/mail-ui.ts';
import { findFreePort } from '../../dev/stack/ports.ts';
import { type Relay, startRelay } from '../../dev/stack/relay.ts';

const RETURN_PATH = 'bounces+token@bounces.agents.example';

interface Received {
  from: string;
  to: string[];
  raw: string;
}

/** Stands in for the service's inbound listener. */
class Inbound {
  readonly received: Received[] = [];
  readonly port: number;
  refusal: { code: number; message: string } | undefined;
  #server: SMTPServer;

  constructor(port: number) {
    this.port = port;
    this.#server = new SMTPServer({
      authOptional: true,
      hideSTARTTLS: true,
      closeTimeout: 100,
      onRcptTo: (_address, _session, done) =>
        done(
          this.refusal && Object.assign(new Error(this.refusal.message), { responseCode: this.refusal.code }),
        ),
      onData: (stream, session, done) => {
        text(stream).then((raw) => {
          const { mailFrom, rcptTo } = session.envelope;
          this.received.push({
            from: mailFrom ? mailFrom.address : '',
            to: rcptTo.map((r) => r.address),
            raw,
          });
          done();
        }, done);
      },
    });
  }

  listen(): Promise<void> {
    return new Promise((resolve) => this.#server.listen(this.port, '127.0.0.1', () => resolve()));
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(resolve));
  }

  async mails(count: number): Promise<Received[]> {
    const deadline = Date.now() + 5000;
    while (this.received.length < count && Date.now() < deadline) await new Promise((r) => setTimeout(r, 10));
    expect(this.received).toHaveLength(count);
    return this.received;
  }
}

let folder: string;
let inbound: Inbound;
let relay: Relay;
let mailUi: MailUi | undefined;
let relayPort: number;

async function start(): Promise<void> {
  relay = await startRelay({
    port: relayPort,
    directory: join(folder, 'spool'),
    serviceDomains: ['agents.example', 'bounces.agents.example'],
    inbound: { host: '127.0.0.1', port: inbound.port },
    retryDelaysMs: [20, 50, 100, 200, 400, 800],
    ...(mailUi ? { mailUi } : {}),
    log: () => undefined,
  });
}

interface SendOptions {
  to: string | string[];
  from?: string;
  notify?: string[];
}

async function send({ to, from = RETURN_PATH, notify = ['success', 'failure', 'delay'] }: SendOptions) {
  const transport = createTransport({ host: '127.0.0.1', port: relayPort });
  const recipients = [to].flat();
  try {
    return await transport.sendMail({
      envelope: { from, to: recipients },
      dsn: { id: 'msg-1+x', return: 'headers', notify, recipient: `rfc822;${recipients[0]}` },
      raw: `From: agent@agents.example\r\nTo: ${recipients.join(', ')}\r\nMessage-ID: <one@agents.example>\r\nSubject: hi\r\n\r\n.body\r\n`,
    });
  } finally {
    transport.close();
  }
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'relay-test-'));
  inbound = new Inbound(await findFreePort());
  await inbound.listen();
  relayPort = await findFreePort();
  mailUi = undefined;
  await start();
});

afterEach(async () => {
  await relay.stop();
  await mailUi?.stop();
  await inbound.close();
  rmSync(folder, { recursive: true, force: true });
});

describe('delivery reports', () => {
  test('report success by RFC 3464 from the null reverse-path, with envelope id and original headers', async () => {
    await send({ to: 'person@elsewhere.example' });
    const [report] = await inbound.mails(1);
    expect(report).toMatchObject({ from: '', to: [RETURN_PATH] });
    const raw = report?.raw ?? '';
    expect(raw).toMatch(/^Content-Type: multipart\/report; report-type=delivery-status;/im);
    expect(raw).toContain('Content-Type: message/delivery-status');
    expect(raw).toContain(
      'Reporting-MTA: dns; relay.localhost\r\nOriginal-Envelope-Id: msg-1+x\r\nArrival-Date: ',
    );
    expect(raw).toContain(
      '\r\n\r\nOriginal-Recipient: rfc822;person@elsewhere.example\r\nFinal-Recipient: rfc822; person@elsewhere.example\r\nAction: delivered\r\nStatus: 2.0.0\r\n',
    );
    expect(raw).toContain('Content-Type: text/rfc822-headers');
    expect(raw).toContain('Message-ID: <one@agents.example>\r\nSubject: hi\r\n');
    expect(raw).not.toContain('.body');
  });

  test.each([
    ['bounce@x.example', 'failed', '5.1.1'],
    ['bounced+tag@x.example', 'failed', '5.1.1'],
    ['Transient.two@x.example', 'failed', '4.4.7'],
    ['delayed@x.example', 'delayed', '4.4.1'],
    ['bouncer@x.example', 'delivered', '2.0.0'],
  ])('%s is reported as %s %s', async (to, action, status) => {
    await send({ to });
    const [report] = await inbound.mails(1);
    expect(report?.raw).toContain(`Action: ${action}\r\nStatus: ${status}\r\n`);
  });

  test('a complaint follows the delivery (RFC 5965)', async () => {
    await send({ to: 'complain@x.example' });
    const reports = (await inbound.mails(2)).map(({ raw }) => raw);
    const complaint = reports.find((raw) => raw.includes('feedback-report'));
    expect(complaint).toMatch(/^Content-Type: multipart\/report; report-type=feedback-report;/im);
    expect(complaint).toContain('Feedback-Type: abuse\r\n');
    expect(complaint).toContain(`Original-Mail-From: <${RETURN_PATH}>\r\n`);
    expect(complaint).toContain('Original-Rcpt-To: <complain@x.example>\r\n');
  });

  test('are sent only if requested, and never to the null reverse-path', async () => {
    await send({ to: 'quiet@x.example', notify: ['failure'] });
    await send({ to: 'bounce@x.example', notify: ['never'] });
    await send({ to: 'bounce@x.example', from: '' });
    await send({ to: 'bounce@x.example', notify: ['failure'] });
    await inbound.mails(1);
    await relay.stop();
    expect(inbound.received).toHaveLength(1);
    await start();
  });

  test('are sent for each recipient', async () => {
    await send({ to: ['a@x.example', 'bounce@x.example'] });
    const actions = (await inbound.mails(2)).map(({ raw }) => /Action: (\w+)/.exec(raw)?.[1]).sort();
    expect(actions).toEqual(['delivered', 'failed']);
  });
});

describe('RCPT', () => {
  test('refuses reject@ permanently and defer@ temporarily', async () => {
    await expect(send({ to: 'reject@x.example' })).rejects.toMatchObject({ responseCode: 550 });
    await expect(send({ to: 'defer+1@x.example' })).rejects.toMatchObject({ responseCode: 451 });
  });
});

describe('mail to the service', () => {
  test('is forwarded to the listener by SMTP and reported as relayed', async () => {
    await send({ to: 'other@agents.example' });
    const mails = await inbound.mails(2);
    const mail = mails.find(({ from }) => from !== '');
    expect(mail).toMatchObject({ from: RETURN_PATH, to: ['other@agents.example'] });
    expect(mail?.raw).toMatch(/^Received: from .*\r\n by relay\.localhost with ESMTP id /);
    expect(mail?.raw).toMatch(/Subject: hi\r\n\r\n\.body\r\n$/);
    expect(mails.find(({ from }) => from === '')?.raw).toContain('Action: relayed');
  });

  test('is retried while the listener is down', async () => {
    await inbound.close();
    await send({ to: 'other@agents.example', notify: ['never'] });
    const returned = new Inbound(inbound.port);
    await returned.listen();
    inbound = returned;
    await inbound.mails(1);
  });

  test('is reported as failed if the listener refuses it', async () => {
    inbound.refusal = { code: 550, message: 'No such inbox' };
    await send({ to: 'nobody@agents.example', from: 'person@x.example' });
    await relay.stop();
    expect(inbound.received).toHaveLength(0);
    expect(readdirSync(join(folder, 'spool'))).toEqual([]);
    await start();
  });

  test('survives a restart of the relay', async () => {
    await inbound.close();
    await send({ to: 'other@agents.example', notify: ['never'] });
    await relay.stop();
    expect(readdirSync(join(folder, 'spool'))).toHaveLength(2);
    const returned = new Inbound(inbound.port);
    await returned.listen();
    inbound = returned;
    await start();
    await inbound.mails(1);
  });
});

describe('mail UI', () => {
  test('shows every accepted message and reports to external senders', async () => {
    await relay.stop();
    mailUi = await startMailUi({
      directory: join(folder, 'ui'),
      webPort: await findFreePort(),
      logFile: join(folder, 'ui.log'),
    });
    await start();
    await send({ to: 'person@x.example' });
    await send({ to: 'bounce@x.example', from: 'stranger@x.example' });
    const subjects = async () =>
      ((await (await fetch(`${mailUi?.url}/api/email`)).json()) as { subject: string }[]).map(
        (mail) => mail.subject,
      );
    const deadline = Date.now() + 5000;
    while ((await subjects()).length < 3 && Date.now() < deadline)
      await new Promise((r) => setTimeout(r, 20));
    expect((await subjects()).sort()).toEqual(['Undelivered Mail Returned to Sender', 'hi', 'hi']);
  });
});
