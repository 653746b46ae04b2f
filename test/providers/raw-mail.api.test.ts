import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ReceiptEntity } from '../../domain/inbound/receipt.entity.ts';
import { type RawEnvelope, signRawMail } from '../../domain/providers/raw-signature.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { ErrorCode } from '../../platform/errors.ts';
import { mail } from '../support/inbound-mail.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { countRows } from '../support/query.ts';
import { useObjectStorage, useTestApp } from '../support/resources.ts';

const SECRET = 'a secret of a test';
const MAIL = 'From: Ada <ada@people.example>\r\nTo: agent@mail.test\r\nSubject: Hi\r\n\r\nHello\r\n';

const objects = useObjectStorage();
const app = useTestApp(() => ({
  config: { ...objects.environment, PROVIDER_RAW_SECRET: SECRET, INBOUND_MAX_SIZE_BYTES: '2000' },
}));

/** curl 7.87, openssl and sha256sum. */
function hasTools(): boolean {
  const versionOf = (program: string, ...args: string[]) =>
    spawnSync(program, args, { encoding: 'utf8' }).stdout ?? '';
  const [, major = 0, minor = 0] = /^curl (\d+)\.(\d+)/.exec(versionOf('curl', '--version')) ?? [];
  const isRecent = Number(major) > 7 || (Number(major) === 7 && Number(minor) >= 87);
  return isRecent && versionOf('openssl', 'version') !== '' && versionOf('sha256sum', '--version') !== '';
}

const arrange = async () => createInbox(app.worker, await createOrganization(app.worker));
const receiptsOf = (inboxId: string) =>
  app.worker.db
    .selectFrom('inbound_receipts')
    .select(columnsOf(ReceiptEntity))
    .where('inbox_id', '=', inboxId)
    .execute();
const seconds = (offset = 0) => String(Math.floor(Date.now() / 1000) + offset);

const SERVED_MAX_SIZE_BYTES = 2_000_000;

interface RawMailRequest {
  envelope?: Partial<RawEnvelope>;
  mail?: string;
  timestamp?: string;
  secret?: string;
  /** Sent instead of the signed values. */
  sent?: { mail?: string; rcptTo?: string[]; mailFrom?: string; signature?: string };
}

function postRawMail(rcptTo: string[], handed: RawMailRequest = {}) {
  const { path, mail, headers } = requestOf(rcptTo, handed);
  return app.call(path, { method: 'POST', raw: mail, headers });
}

function requestOf(
  rcptTo: string[],
  { envelope, mail = MAIL, timestamp = seconds(), secret = SECRET, sent = {} }: RawMailRequest = {},
) {
  const signed = {
    mailFrom: 'ada@people.example',
    rcptTo,
    clientIp: '192.0.2.7',
    helo: 'mx.people.example',
    id: '',
    ...envelope,
  };
  const contentSha256 = createHash('sha256').update(mail).digest('hex');
  const query = new URLSearchParams({
    mail_from: sent.mailFrom ?? signed.mailFrom,
    client_ip: signed.clientIp,
    helo: signed.helo,
    id: signed.id,
  });
  for (const address of sent.rcptTo ?? rcptTo) query.append('rcpt_to', address);
  return {
    path: `/providers/raw?${query}`,
    mail: sent.mail ?? mail,
    headers: {
      'content-type': 'message/rfc822',
      'x-provider-timestamp': timestamp,
      'x-provider-content-sha256': contentSha256,
      'x-provider-signature': sent.signature ?? signRawMail(secret, signed, { timestamp, contentSha256 }),
    },
  };
}

describe('a signed raw message', () => {
  test('is not for recipients that accept only authenticated mail of its sender', async () => {
    const organization = await createOrganization(app.worker);
    const [strict, other] = [
      await createInbox(app.worker, organization),
      await createInbox(app.worker, organization),
    ];
    const added = await app.call('/lists/receive/allow', {
      method: 'POST',
      token: organization.token,
      body: { entry: 'people.example', inbox_id: strict.id, authenticated: true },
    });
    expect(added.statusCode).toBe(201);
    const both = await postRawMail([strict.email, other.email], { envelope: { clientIp: '127.0.0.1' } });
    expect(both.json()).toMatchObject({ accepted: [other.email], unknown: [strict.email] });
    expectProblem(
      await postRawMail([strict.email], { envelope: { clientIp: '127.0.0.1' } }),
      'unprocessable',
    );
    expect(await receiptsOf(strict.id)).toEqual([]);
    expect(await receiptsOf(other.id)).toHaveLength(1);
  });

  test('is accepted with its envelope; the response lists unknown addresses', async () => {
    const inbox = await arrange();
    const response = await postRawMail([inbox.email, 'nobody@mail.test']);
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({
      object: 'mail_handover',
      accepted: [inbox.email],
      unknown: ['nobody@mail.test'],
    });
    const [receipt] = await receiptsOf(inbox.id);
    expect(receipt).toMatchObject({
      kind: 'mail',
      mailFrom: 'ada@people.example',
      rcptTo: inbox.email,
      clientIp: '192.0.2.7',
      helo: 'mx.people.example',
      sizeBytes: MAIL.length,
    });
    expect((await app.storage.getBytes(receipt?.rawKey ?? '', 10_000)).toString()).toBe(MAIL);
  });

  test('is accepted over a real connection', async () => {
    const inbox = await arrange();
    const address = await app.app.listen({ host: '127.0.0.1', port: 0 });
    const { path, mail, headers } = requestOf([inbox.email]);
    const response = await fetch(`${address}/api/v1${path}`, {
      method: 'POST',
      body: mail,
      headers: { ...headers, 'idempotency-key': 'again' },
    });
    expect(await response.json()).toEqual({ object: 'mail_handover', accepted: [inbox.email], unknown: [] });
  });

  test('is accepted once, no matter how often it is sent', async () => {
    const inbox = await arrange();
    const timestamp = seconds();
    const responses = [
      await postRawMail([inbox.email], { timestamp }),
      await postRawMail([inbox.email], { timestamp }),
    ];
    expect(responses.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
    expect(responses[0]?.json()).toEqual(responses[1]?.json());
    expect(await receiptsOf(inbox.id)).toHaveLength(1);
  });

  test('with an id is accepted once, even with a new signature', async () => {
    const inbox = await arrange();
    const envelope = { id: `queue-${inbox.id}` };
    await postRawMail([inbox.email], { envelope, timestamp: seconds(-10) });
    expect((await postRawMail([inbox.email], { envelope })).statusCode).toBe(200);
    expect(await receiptsOf(inbox.id)).toHaveLength(1);
  });
});

describe('over a real connection', () => {
  const served = useTestApp(() => ({
    config: {
      ...objects.environment,
      PROVIDER_RAW_SECRET: SECRET,
      INBOUND_MAX_SIZE_BYTES: String(SERVED_MAX_SIZE_BYTES),
    },
  }));
  let url: string;
  beforeAll(async () => {
    url = await served.app.listen({ host: '127.0.0.1', port: 0 });
  });

  const largeMail = (to: string) =>
    Buffer.from(`${mail({ To: to })}\r\n${'Many lines like this one.\r\n'.repeat(50_000)}`);
  /** Runs the script from docs/mail-servers.md the way Postfix does. */
  const runHandOverScript = async (args: string[], raw: Buffer, settings: string) => {
    const script = resolve(import.meta.dirname, '../../docs/hand-over.sh');
    const child = spawn('sh', [script, ...args], { env: { ...process.env, HAND_OVER_SETTINGS: settings } });
    child.stdin.on('error', () => {});
    child.stdin.end(raw);
    const [code] = await once(child, 'exit');
    return code as number;
  };

  // The mail server provides what the script needs.
  (hasTools() ? test : test.skip).each([
    ['unchanged', 0],
    ['with the sender <>', 0],
    ['for an unknown recipient', 67],
    ['with another secret', 75],
    ['over the size limit', 69],
    ['without settings', 75],
  ])('the Postfix script delivers a message %s: %i', async (what, status) => {
    const inbox = await arrange();
    const folder = await mkdtemp(join(tmpdir(), 'agent-email-hand-over-'));
    const settings = join(folder, 'settings');
    try {
      const secret = what === 'with another secret' ? 'other' : SECRET;
      if (what !== 'without settings')
        await writeFile(settings, `PROVIDER_RAW_SECRET='${secret}'\nAPI_URL=${url}\n`);
      const sender = what === 'with the sender <>' ? '' : 'ada+a&b=c%d@people.example';
      const to = what === 'for an unknown recipient' ? '*@mail.test' : inbox.email;
      const raw =
        what === 'over the size limit' ? Buffer.alloc(SERVED_MAX_SIZE_BYTES + 1, 'x') : largeMail(to);
      expect(await runHandOverScript(['192.0.2.7', '', `id-${inbox.id}`, sender, to], raw, settings)).toBe(
        status,
      );
      const receipts = await receiptsOf(inbox.id);
      expect(receipts.map(({ mailFrom, sizeBytes }) => [mailFrom, sizeBytes])).toEqual(
        status === 0 ? [[sender, raw.length]] : [],
      );
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

describe('a raw message is rejected without storing anything', () => {
  test.each<[string, RawMailRequest, ErrorCode]>([
    ['signed with another secret', { secret: 'another' }, 'unauthenticated'],
    ['signed 6 minutes ago', { timestamp: seconds(-360) }, 'unauthenticated'],
    ['signed for a future time', { timestamp: seconds(3_600) }, 'unauthenticated'],
    ['with bytes that differ from the signed bytes', { sent: { mail: `${MAIL}more` } }, 'unauthenticated'],
    [
      'with another sender than the signed one',
      { sent: { mailFrom: 'eve@people.example' } },
      'unauthenticated',
    ],
    ['with a malformed signature', { sent: { signature: 'v1=00' } }, 'validation_error'],
    ['with a line break in the envelope', { envelope: { helo: 'a\nb' } }, 'validation_error'],
    ['over the size limit', { mail: `${MAIL}${'x'.repeat(2_000)}` }, 'payload_too_large'],
    ['in a mail loop', { mail: `${'Received: x\r\n'.repeat(51)}${MAIL}` }, 'unprocessable'],
  ])('%s', async (_what, handed, code) => {
    const inbox = await arrange();
    expectProblem(await postRawMail([inbox.email], handed), code);
    expect(await receiptsOf(inbox.id)).toEqual([]);
  });

  test('for unknown recipients', async () => {
    expectProblem(await postRawMail(['nobody@mail.test']), 'not_found');
  });

  test('with an unsigned recipient', async () => {
    const [inbox, other] = [await arrange(), await arrange()];
    const response = await postRawMail([inbox.email], { sent: { rcptTo: [inbox.email, other.email] } });
    expectProblem(response, 'unauthenticated');
    expect(await receiptsOf(other.id)).toEqual([]);
  });

  test.each<[string, Record<string, string>, string]>([
    ['text', { 'content-type': 'text/plain' }, MAIL],
    ['JSON', { 'content-type': 'application/json' }, '{}'],
    ['a form', { 'content-type': 'multipart/form-data; boundary=x' }, '--x--'],
    ['nothing', {}, ''],
  ])('if it is %s', async (_name, type, raw) => {
    const { path, headers } = requestOf(['a@b.example'], { mail: raw });
    const { 'content-type': _mail, ...signed } = headers;
    const response = await app.call(path, { method: 'POST', raw, headers: { ...signed, ...type } });
    expect(expectProblem(response, 'unsupported_media_type').fix).toContain('message/rfc822');
  });

  test('a signature that is reused for other bytes does not affect the accepted message', async () => {
    const inbox = await arrange();
    const timestamp = seconds();
    await postRawMail([inbox.email], { timestamp });
    expectProblem(
      await postRawMail([inbox.email], { timestamp, sent: { mail: 'Subject: x\r\n\r\nforged' } }),
      'unauthenticated',
    );
    const [receipt] = await receiptsOf(inbox.id);
    expect((await app.storage.getBytes(receipt?.rawKey ?? '', 10_000)).toString()).toBe(MAIL);
    expect(
      await countRows(app.worker.db.selectFrom('messages').select('id').where('inbox_id', '=', inbox.id)),
    ).toBe(0);
  });
});
