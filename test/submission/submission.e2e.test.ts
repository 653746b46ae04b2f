import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import nodemailer, { type SendMailOptions } from 'nodemailer';
import { RawSmtpClient } from '../inbound/raw-smtp-client.ts';
import { type Answer, apiClient } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { sharedService } from '../support/service.ts';

const service = sharedService();
const call = apiClient(service, service.api_key);
const TIMEOUT_MS = 30_000;

jest.setTimeout(60_000);

interface Account {
  inbox: Answer;
  user: string;
  pass: string;
}

async function openAccount(): Promise<Account> {
  const inbox = (await call('POST', '/inboxes', { display_name: 'Mail Program' })).body;
  const { status, body } = await call('POST', `/inboxes/${inbox.id}/credentials/rotate`);
  expect(status).toBe(200);
  expect(body).toMatchObject({ port: service.submission_smtp.port, username: inbox.email });
  return { inbox, user: inbox.email, pass: String(body.password) };
}

async function submit({ user, pass }: Pick<Account, 'user' | 'pass'>, mail: SendMailOptions) {
  const transport = nodemailer.createTransport({
    ...service.submission_smtp,
    requireTLS: true,
    // The development certificate is self-signed; a mail client would ask its user.
    tls: { rejectUnauthorized: false },
    auth: { user, pass },
  });
  try {
    return await transport.sendMail({ from: user, text: 'Hello', ...mail });
  } finally {
    transport.close();
  }
}

const idOf = ({ response }: { response: string }) => /queued as (msg_\w+)/.exec(response)?.[1] ?? '';

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});

test('processes a submitted message like an API message and sends it byte for byte', async () => {
  const other = (await call('POST', '/inboxes', {})).body;
  const content = randomBytes(300_000);
  const info = await submit(account, {
    from: `Программа <${account.user}>`,
    to: [other.email, 'ada@people.example'],
    bcc: 'blind@people.example',
    subject: 'Grüße aus dem Programm',
    html: '<p>Hello</p>',
    attachments: [{ filename: '見積書.pdf', content, contentType: 'application/pdf' }],
    headers: { 'X-Campaign': 'spring' },
  });
  const id = idOf(info);
  const sent = await eventually(async () => {
    const { body } = await call('GET', `/messages/${id}`);
    expect(body.status).toBe('delivered');
    return body;
  }, TIMEOUT_MS);
  expect(sent).toMatchObject({
    direction: 'outbound',
    inbox_id: account.inbox.id,
    subject: 'Grüße aus dem Programm',
    from_address: { email: account.user, name: 'Программа' },
    to_addresses: [other.email, 'ada@people.example'],
    bcc_addresses: ['blind@people.example'],
    rfc_message_id: info.messageId.slice(1, -1),
    html_body: expect.stringContaining('<p>Hello</p>'),
    headers: { 'x-campaign': 'spring' },
    attachments: [{ filename: '見積書.pdf', content_type: 'application/pdf', size_bytes: content.length }],
  });
  expect(sent.recipients.map(({ email }) => email).sort()).toEqual(
    [other.email, 'ada@people.example', 'blind@people.example'].sort(),
  );
  const raw = await (
    await fetch(String((await call('GET', `/messages/${id}/raw`)).body.download_url))
  ).text();
  expect(raw).not.toMatch(/^bcc:|blind@/im);
  const arrived = await eventually(async () => {
    const { body } = await call('GET', `/inboxes/${other.id}/messages?direction=inbound`);
    expect(body.data).toHaveLength(1);
    return body.data[0] as Answer;
  }, TIMEOUT_MS);
  const file = (await call('GET', `/attachments/${arrived.attachment_ids[0]}`)).body;
  const bytes = Buffer.from(await (await fetch(String(file.download_url))).arrayBuffer());
  expect(bytes.equals(content)).toBe(true);
});

test('sends a message once when the client repeats it after a lost reply', async () => {
  const mail = { to: 'ada@people.example', messageId: `<${randomBytes(8).toString('hex')}@program>` };
  const [first, second] = await Promise.all([submit(account, mail), submit(account, mail)]);
  const third = await submit(account, mail);
  expect(idOf(first)).toMatch(/^msg_/);
  expect([idOf(second), idOf(third)]).toEqual([idOf(first), idOf(first)]);
  const others = await submit(account, { ...mail, to: 'grace@people.example' });
  expect(idOf(others)).not.toBe(idOf(first));
});

test('adds a reply to the thread it references', async () => {
  const first = await submit(account, { to: 'ada@people.example', subject: 'Question' });
  const second = await submit(account, {
    to: 'ada@people.example',
    subject: 'Re: Question',
    inReplyTo: first.messageId,
    references: first.messageId,
  });
  const [a, b] = await Promise.all([first, second].map((info) => call('GET', `/messages/${idOf(info)}`)));
  expect(b?.body.thread_id).toBe(a?.body.thread_id);
});

const FORGED_FROM = '"Bob" <victim@people.example>';

describe('is refused without queueing anything', () => {
  const count = async () =>
    (await call('GET', `/inboxes/${account.inbox.id}/messages?limit=100`)).body.data.length;

  test.each<[string, SendMailOptions, RegExp]>([
    [
      'a different From',
      { from: 'boss@people.example', envelope: undefined, to: 'a@people.example' },
      /553 5\.7\.1/,
    ],
    [
      'a From that differs from the envelope',
      { from: 'boss@people.example', to: 'a@people.example' },
      /55[03] 5\.7\.1/,
    ],
    [
      'an undeliverable recipient address',
      { to: 'a@people.example', envelope: { to: ['ü@people.example'] } },
      /553 5\.1\.3|SMTPUTF8/,
    ],
    ['a header that is not one', { to: 'a@people.example', raw: 'no mail at all' }, /554 5\.6\.0/],
    [
      'a NUL in the header',
      { raw: Buffer.from(`From: ${FORGED_FROM}\r\nX-A: \0\r\n\r\nHello\r\n`) },
      /554 5\.6\.0/,
    ],
    [
      'two From fields',
      { raw: Buffer.from(`From: ${FORGED_FROM}\r\nFrom: ${FORGED_FROM}\r\n\r\nHello\r\n`) },
      /550 5\.7\.1/,
    ],
  ])('for %s', async (_name, mail, expectedReply) => {
    const before = await count();
    const envelope = mail.envelope
      ? { from: account.user, ...(mail.envelope as object) }
      : _name.startsWith('a From') || mail.raw
        ? { from: account.user, to: 'a@people.example' }
        : undefined;
    await expect(
      submit(account, { ...mail, ...(envelope ? { envelope } : {}) } as SendMailOptions),
    ).rejects.toThrow(expectedReply);
    expect(await count()).toBe(before);
  });

  test('for a 51st recipient', async () => {
    const to = Array.from({ length: 51 }, (_, index) => `someone-${index}@people.example`);
    const info = await submit(account, { to });
    expect(info.rejected).toEqual(['someone-50@people.example']);
  });

  test('for a blocked recipient, with the reason', async () => {
    await call('POST', '/lists/send/block', { entry: 'blocked.example', inbox_id: account.inbox.id });
    await expect(submit(account, { to: 'a@blocked.example' })).rejects.toThrow(/550 5\.7\.1 .*block list/);
  });

  test('for a recipient whom a policy of the organization does not allow, with the policy', async () => {
    const { status } = await call('PATCH', '/org/policies', {
      blocked_recipient_domains: ['submission-policy.example'],
    });
    expect(status).toBe(200);
    await expect(submit(account, { to: 'a@mx.submission-policy.example' })).rejects.toThrow(
      /550 5\.7\.1 .*blocked_recipient_domains/,
    );
  });

  test('for a wrong password', async () => {
    await expect(submit({ ...account, pass: 'wrong' }, { to: 'a@people.example' })).rejects.toThrow(
      /535 5\.7\.8/,
    );
    await eventually(async () => {
      const { body } = await call('GET', `/refusals?inbox_id=${account.inbox.id}&reason=wrong_credentials`);
      expect(body.data).toEqual([
        expect.objectContaining({ direction: 'outbound', stage: 'auth', response_code: 535, to: null }),
      ]);
    }, TIMEOUT_MS);
  });
});

test('does not authenticate without TLS', async () => {
  const client = await RawSmtpClient.greeted(service.submission_smtp.port);
  expect(await client.command('AUTH PLAIN AGEAYg==')).toMatch(/^5(30|38|02|00)/);
  expect(await client.command(`MAIL FROM:<${account.user}>`)).toMatch(/^530/);
  client.socket.destroy();
});

test('rejects the password of a deleted inbox', async () => {
  const short = await openAccount();
  await call('DELETE', `/inboxes/${short.inbox.id}`);
  await expect(submit(short, { to: 'a@people.example' })).rejects.toThrow(/535/);
});

test('ends connections that authenticated with a replaced password', async () => {
  const short = await openAccount();
  const transport = nodemailer.createTransport({
    ...service.submission_smtp,
    pool: true,
    maxConnections: 1,
    requireTLS: true,
    tls: { rejectUnauthorized: false },
    auth: { user: short.user, pass: short.pass },
  });
  const mail = { from: short.user, to: 'a@people.example', text: 'Hello' };
  try {
    await transport.sendMail({ ...mail, subject: 'Before' });
    await call('POST', `/inboxes/${short.inbox.id}/credentials/rotate`);
    await expect(transport.sendMail({ ...mail, subject: 'After' })).rejects.toThrow(
      /421 4\.7\.0|535 5\.7\.8/,
    );
    expect((await call('GET', `/inboxes/${short.inbox.id}/messages`)).body.data).toHaveLength(1);
  } finally {
    transport.close();
  }
});

test('replies in ASCII for any refusal text', async () => {
  const { user, pass } = account;
  const transport = nodemailer.createTransport({
    ...service.submission_smtp,
    requireTLS: true,
    tls: { rejectUnauthorized: false },
    auth: { user, pass },
  });
  const refused = transport.sendMail({
    envelope: { from: user, to: ['ü@people.example'] },
    raw: `From: ${user}\r\n\r\n`,
  });
  await expect(refused).rejects.toThrow(/^[\x20-\x7e]*5\.1\.3[\x20-\x7e]*$/);
  transport.close();
});
