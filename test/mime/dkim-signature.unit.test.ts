import { generateKeyPairSync } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { buildMime, type MimeMessage } from '../../domain/mime/build-mime.ts';
import { createDkimSignature, type DkimSigningKey } from '../../domain/mime/dkim-signature.ts';
import { signBytes, signStream } from '../../domain/mime/sign-mime.ts';
import { createResolver } from '../../platform/dns.ts';
import { SES_OVERWRITTEN_FIELDS } from '../../platform/mail-transport/ses-transport.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const KEY: DkimSigningKey = {
  domain: 'shop.example',
  selector: 'ae1-test',
  privateKey,
  excludedFields: new Set(),
};
const SIGNED_AT = new Date('2026-11-21T10:00:00Z');

let server: DnsServer;
beforeAll(async () => {
  server = await startDnsServer();
  const record = `v=DKIM1; k=rsa; p=${publicKey.export({ type: 'spki', format: 'der' }).toString('base64')}`;
  server.set('ae1-test._domainkey.shop.example', 'TXT', [record.slice(0, 255), record.slice(255)]);
});
afterAll(() => server.stop());

/** Verifies with an independent implementation, which finds the key in DNS. */
async function verify(mail: Buffer | string) {
  const resolver = createResolver({ DNS_SERVERS: server.address, DNS_TIMEOUT_MS: 1000, DNS_TRIES: 2 });
  const { results } = await dkimVerify(mail, {
    resolver: (name: string, type: string) => resolver.resolve(name, type) as never,
  });
  return results.map(({ signingDomain, status }) =>
    `${signingDomain} ${status.result} ${status.comment || ''}`.trim(),
  );
}

const message: MimeMessage = {
  messageId: '1@shop.example',
  date: SIGNED_AT,
  from: { email: 'ada@shop.example', name: 'Åda' },
  to: [{ email: 'bob@people.example' }],
  cc: [],
  replyTo: [],
  subject: 'Ein Gruß, der so lang ist, dass die Zeile des Betreffs gefaltet werden muss, und noch etwas mehr',
  inReplyTo: null,
  references: [],
  autoSubmitted: 'auto-generated',
  headers: { 'X-Order': '17' },
  text: 'Hello\n',
  html: null,
};
const PASS = ['shop.example pass'];

describe('verifies a message with', () => {
  test.each<[string, Partial<MimeMessage>]>([
    ['plain text', {}],
    ['an empty body', { text: '' }],
    ['a body of empty lines', { text: '\n\n\n' }],
    ['eight-bit text and long lines', { text: `Grüße ${'ä'.repeat(5000)}\n${'x'.repeat(5000)}` }],
    ['white space at line ends', { text: 'a \t \n\n b\t\tc   \n\n\n' }],
    ['text and HTML', { html: '<p>Hello <b>Bob</b></p>' }],
    [
      'references that fold',
      { inReplyTo: 'a@b', references: Array.from({ length: 15 }, (_, at) => `${at}-${'r'.repeat(40)}@b`) },
    ],
    [
      'an attachment',
      {
        attachments: [
          {
            filename: 'ä.bin',
            contentType: 'application/octet-stream',
            contentId: null,
            disposition: 'attachment',
            open: async () => Readable.from([Buffer.alloc(100_000, 0xe4)]),
          },
        ],
      },
    ],
  ])('%s', async (_, changes) => {
    const write = () => buildMime({ ...message, ...changes });
    const held = await signBytes(await buffer(write()), KEY, SIGNED_AT);
    const streamed = await buffer(await signStream(write, KEY, SIGNED_AT));
    expect(await verify(held)).toEqual(PASS);
    expect(streamed.equals(held)).toBe(true);
    const field = held.toString('latin1').split(/\r\n(?![ \t])/)[0] ?? '';
    expect(Math.max(...field.split('\r\n').map(({ length }) => length))).toBeLessThanOrEqual(78);
  });
});

test('verifies any lines, regardless of chunk boundaries', async () => {
  const line = fc.stringMatching(/^[ \t\x21-\x7e\x80-\xff]{0,80}$/);
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { maxLength: 20 }),
      fc.integer({ min: 1, max: 50 }),
      async (lines, size) => {
        const mail = Buffer.from(
          `From: a@shop.example\r\nSubject:  x\t y \r\n\r\n${lines.join('\r\n')}`,
          'latin1',
        );
        const chunks = Array.from({ length: Math.ceil(mail.length / size) }, (_, at) =>
          mail.subarray(at * size, (at + 1) * size),
        );
        const signed = await buffer(await signStream(() => Readable.from(chunks), KEY, SIGNED_AT));
        expect(await verify(signed)).toEqual(PASS);
      },
    ),
    { numRuns: 60 },
  );
});

test.each(['Reply-To', 'Subject', 'References'])(
  'signs several %s fields from the last to the first',
  async (name) => {
    const mail = Buffer.from(
      `From: a@shop.example\r\n${name}: <1@x>\r\nTo: b@people.example\r\n${name}: <2@x>\r\n${name}: <3@x>\r\n\r\nHello\r\n`,
    );
    const signed = await signBytes(mail, KEY, SIGNED_AT);
    expect(await verify(signed)).toEqual(PASS);
    const reordered = signed
      .toString('latin1')
      .replace('<1@x>', '<0@x>')
      .replace('<2@x>', '<1@x>')
      .replace('<0@x>', '<2@x>');
    expect((await verify(reordered))[0]).toMatch(/^shop\.example (fail|neutral)/);
  },
);

describe('the signature breaks with', () => {
  const signed = async () =>
    (await signBytes(await buffer(buildMime(message)), KEY, SIGNED_AT)).toString('latin1');

  test.each([
    ['another body', (mail: string) => mail.replace('Hello', 'Hullo')],
    ['text after the body', (mail: string) => `${mail}more\r\n`],
    ['another subject', (mail: string) => mail.replace('Subject: ', 'Subject: Not ')],
    ['a second From', (mail: string) => `From: eve@shop.example\r\n${mail}`],
    ['an added Reply-To', (mail: string) => `Reply-To: eve@evil.example\r\n${mail}`],
    ['a second Subject', (mail: string) => mail.replace('\r\nSubject:', '\r\nSubject: Pay\r\nSubject:')],
  ])('%s', async (_, change) => {
    const [result] = await verify(change(await signed()));
    expect(result).toMatch(/^shop\.example (fail|neutral)/);
  });

  test('survives changes that relays make: added fields, refolded lines', async () => {
    const mail = (await signed()).replace('Subject: ', 'Subject:\r\n   ');
    expect(await verify(`Received: from a by b; now\r\n${mail}`)).toEqual(PASS);
  });
});

test('does not sign fields that SES overwrites', async () => {
  const rewritten = async (unsigned: string[]) => {
    const mail = (
      await signBytes(
        await buffer(buildMime(message)),
        { ...KEY, excludedFields: new Set(unsigned) },
        SIGNED_AT,
      )
    ).toString('latin1');
    const sent = mail
      .replace('<1@shop.example>', '<0102-1@eu-west-1.amazonses.com>')
      .replace(/^Date: .*$/m, 'Date: Sat, 21 Nov 2026 10:00:07 +0000');
    expect(sent).toContain('10:00:07');
    expect(sent).toContain('<0102-1@eu-west-1');
    return verify(sent);
  };
  expect(await rewritten(SES_OVERWRITTEN_FIELDS)).toEqual(PASS);
  for (const field of SES_OVERWRITTEN_FIELDS) expect(await rewritten([field])).not.toEqual(PASS);
});

test('fails the stream if the second write differs', async () => {
  const bodies = ['first', 'second'].values();
  const write = () =>
    Readable.from([
      Buffer.from(`From: a@shop.example

${bodies.next().value}`),
    ]);
  await expect(buffer(await signStream(write, KEY, SIGNED_AT))).rejects.toThrow('differs');
});

describe('the field DKIM-Signature', () => {
  const NAMES = [
    ...[
      'From',
      'Sender',
      'Reply-To',
      'Subject',
      'Date',
      'Message-ID',
      'To',
      'Cc',
      'In-Reply-To',
      'References',
    ],
    ...['MIME-Version', 'Content-Type', 'Content-Transfer-Encoding', 'Auto-Submitted'],
    ...['List-Unsubscribe', 'List-Unsubscribe-Post'],
  ];
  const OVERSIGNED = ['from', 'sender', 'reply-to', 'subject', 'date', 'to', 'cc', 'content-type'];
  const sign = (header: string) =>
    createDkimSignature(Readable.from([Buffer.from(`${header}\r\nHello\r\n`)]), KEY, SIGNED_AT);
  /** Its tags, unfolded. */
  const tagsOf = async (header: string) => {
    const field = await sign(header);
    const tags = field
      .slice(field.indexOf(':') + 1)
      .replace(/\s/g, '')
      .split(';');
    return Object.fromEntries(
      tags.map((tag) => [tag.slice(0, tag.indexOf('=')), tag.slice(tag.indexOf('=') + 1)]),
    );
  };

  test('names algorithm, domain, selector and time', async () => {
    expect(await tagsOf('From: a@shop.example\r\n')).toMatchObject({
      v: '1',
      a: 'rsa-sha256',
      c: 'relaxed/relaxed',
      d: 'shop.example',
      s: 'ae1-test',
      t: String(SIGNED_AT.getTime() / 1_000),
      bh: expect.any(String),
      b: expect.stringMatching(/^[A-Za-z0-9+/]{342}==$/),
    });
  });

  test('signs every field that says who wrote what to whom, and no others', async () => {
    const header = [...NAMES, 'X-Order', 'Received'].map((name) => `${name}: x\r\n`).join('');
    const signed = NAMES.map((name) => name.toLowerCase());
    const { h } = await tagsOf(header);
    expect(h).toBe(signed.flatMap((name) => (OVERSIGNED.includes(name) ? [name, name] : [name])).join(':'));
  });

  test('names fields that a program would show once more than there are, so that none can be added', async () => {
    const { h = '' } = await tagsOf(
      'From: a@shop.example\r\nTo: b@people.example\r\nTo: c@people.example\r\n',
    );
    expect(h).toBe('from:from:sender:reply-to:subject:date:to:to:to:cc:content-type');
  });

  test('takes the name of a field in any case, and with a space before the colon', async () => {
    const { h = '' } = await tagsOf('FROM : a@shop.example\r\n');
    expect(h).toMatch(/^from:from:sender/);
    expect(
      await verify(`${await sign('FROM : a@shop.example\r\n')}FROM : a@shop.example\r\n\r\nHello\r\n`),
    ).toEqual(PASS);
  });

  test('is folded only where a line would be longer than 78 characters', async () => {
    const lines = (await sign(NAMES.map((name) => `${name}: x\r\n`).join(''))).trimEnd().split('\r\n');
    const header = lines.slice(
      0,
      lines.findIndex((line) => line.startsWith(' b=')),
    );
    expect(lines[0]).toMatch(/^DKIM-Signature: v=1; a=rsa-sha256; c=relaxed\/relaxed; d=shop\.example;/);
    for (const [index, line] of header.entries()) {
      expect(line.length).toBeLessThanOrEqual(78);
      const next = header[index + 1];
      const word = next?.match(/^ [^:; ]+[:;]?/)?.[0] ?? '';
      if (next !== undefined) expect(line.length + word.length).toBeGreaterThan(76);
    }
    const values = lines.slice(header.length);
    expect(values.slice(1, -1).every((line) => line.length === 73)).toBe(true);
  });

  test('covers fields and body in any encoding, byte for byte', async () => {
    const mail = Buffer.from(
      'From: a@shop.example\r\nSubject: Gr\u00fc\u00dfe\r\n\r\nGr\u00fc\u00dfe\r\n',
      'latin1',
    );
    const signed = await signBytes(mail, KEY, SIGNED_AT);
    expect(await verify(signed)).toEqual(PASS);
    const changed = signed.toString('latin1').replace('\u00fc', '\u00fd');
    expect(await verify(Buffer.from(changed, 'latin1'))).not.toEqual(PASS);
  });

  test('is of a message without a body, too', async () => {
    const signed = await signBytes(Buffer.from('From: a@shop.example\r\n\r\n'), KEY, SIGNED_AT);
    expect(await verify(signed)).toEqual(PASS);
  });

  test('is refused to a message whose header does not end within 1 MiB', async () => {
    const header = (bytes: number) => [Buffer.from('From: a@shop.example\r\nX: '), Buffer.alloc(bytes, 'x')];
    const end = Buffer.from('\r\n\r\n');
    const create = (chunks: Buffer[]) => createDkimSignature(Readable.from(chunks), KEY, SIGNED_AT);
    await expect(create([...header(1024 * 1024), end])).rejects.toThrow('does not end');
    await expect(create([...header(1024 * 1024 - 25), end])).resolves.toContain('d=shop.example');
    // One chunk holds the end of the header.
    await expect(create([Buffer.concat([...header(1024 * 1024), end])])).resolves.toContain('d=shop.example');
  });
});
