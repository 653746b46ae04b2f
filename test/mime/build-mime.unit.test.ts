import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type AddressObject, simpleParser } from 'mailparser';
import { buildMime, buildReferencesField, type MimeMessage } from '../../domain/mime/build-mime.ts';
import { htmlToText } from '../../domain/mime/html-to-text.ts';

const BASE: MimeMessage = {
  messageId: 'msg_01@agents.test',
  date: new Date('2026-03-04T05:06:07Z'),
  from: { email: 'agent@agents.test', name: 'An Agent' },
  to: [{ email: 'someone@example.com' }],
  cc: [],
  replyTo: [],
  subject: 'Hello',
  inReplyTo: null,
  references: [],
  autoSubmitted: 'auto-generated',
  headers: {},
  text: 'Hello there',
  html: null,
};

async function build(changes: Partial<MimeMessage>): Promise<string> {
  return (await buffer(buildMime({ ...BASE, ...changes }))).toString('latin1');
}

async function parse(changes: Partial<MimeMessage>) {
  return simpleParser(await build(changes), { skipHtmlToText: true, skipTextToHtml: true });
}

function fieldNames(raw: string): string[] {
  const head = raw.slice(0, raw.indexOf('\r\n\r\n')).replace(/\r\n[ \t]/g, ' ');
  return head.split('\r\n').map((line) => line.slice(0, line.indexOf(':')));
}

describe('a message', () => {
  test('has exactly these bytes', async () => {
    expect(await build({})).toBe(
      [
        'Auto-Submitted: auto-generated',
        'From: An Agent <agent@agents.test>',
        'To: someone@example.com',
        'Subject: Hello',
        'Message-ID: <msg_01@agents.test>',
        'Date: Wed, 04 Mar 2026 05:06:07 +0000',
        'Content-Transfer-Encoding: 7bit',
        'MIME-Version: 1.0',
        'Content-Type: text/plain; charset=utf-8',
        '',
        'Hello there',
        '',
      ].join('\r\n'),
    );
  });

  test('has no Auto-Submitted field unless it is automatic', async () => {
    expect(fieldNames(await build({ autoSubmitted: null }))).not.toContain('Auto-Submitted');
  });

  test('has the same bytes, including boundaries, if built again', async () => {
    const changes = { html: '<p>é</p>', attachments: [attachment('a.txt', 'x')] };
    expect(await build(changes)).toBe(await build({ ...changes, attachments: [attachment('a.txt', 'x')] }));
  });

  test('preserves the case of custom header names', async () => {
    const headers = {
      'X-MS': '1',
      'x-tenant-ID': '2',
      'X-MSMail': '3',
      'LIST-unsubscribe': '<https://a.test>',
    };
    const raw = await build({ headers, attachments: [attachment('a.txt', 'x')] });
    expect(fieldNames(raw)).toEqual(
      expect.arrayContaining([...Object.keys(headers), 'Content-Type', 'From']),
    );
  });

  test('without visible recipients is addressed to undisclosed-recipients', async () => {
    expect(await build({ to: [] })).toContain('\r\nTo: "undisclosed-recipients":;\r\n');
    expect(await build({ to: [], cc: [{ email: 'c@example.com' }] })).not.toContain('\r\nTo:');
  });
});

describe('a parser reads', () => {
  test('bodies, names, thread and custom fields', async () => {
    const parsed = await parse({
      from: { email: 'agent@agents.test', name: 'Ågent "Q", Esq. <x@y>' },
      to: [{ email: 'a@example.com', name: '山田 太郎' }, { email: 'b@example.com' }],
      cc: [{ email: 'c@example.com', name: 'Ц'.repeat(200) }],
      replyTo: [{ email: 'reply@agents.test' }],
      subject: `Grüße — ${'見出し'.repeat(120)} 🎉`,
      inReplyTo: 'parent@example.com',
      references: ['root@example.com', 'parent@example.com'],
      headers: { 'X-Case': 'Ünïcode 42', 'List-Unsubscribe': '<https://agents.test/u?id=1&x=2>' },
      text: `Hé\n.dot\nFrom here\n${'long '.repeat(500)}`,
      html: '<p>Hé</p>',
    });
    expect(parsed.from?.value).toEqual([{ address: 'agent@agents.test', name: 'Ågent "Q", Esq. <x@y>' }]);
    expect((parsed.to as AddressObject).value).toEqual([
      { address: 'a@example.com', name: '山田 太郎' },
      { address: 'b@example.com', name: '' },
    ]);
    expect((parsed.cc as AddressObject).value).toEqual([{ address: 'c@example.com', name: 'Ц'.repeat(200) }]);
    expect(parsed.replyTo?.value[0]?.address).toBe('reply@agents.test');
    expect(parsed.subject).toBe(`Grüße — ${'見出し'.repeat(120)} 🎉`);
    expect(parsed.messageId).toBe('<msg_01@agents.test>');
    expect(parsed.inReplyTo).toBe('<parent@example.com>');
    expect(parsed.references).toEqual(['<root@example.com>', '<parent@example.com>']);
    expect(parsed.date).toEqual(BASE.date);
    expect(parsed.headers.get('x-case')).toBe('=?UTF-8?Q?=C3=9Cn=C3=AFcode_42?=');
    expect(parsed.headers.get('list')).toMatchObject({
      unsubscribe: { url: 'https://agents.test/u?id=1&x=2' },
    });
    expect(parsed.text?.trimEnd()).toBe(`Hé\n.dot\nFrom here\n${'long '.repeat(500)}`.trimEnd());
    expect(parsed.html).toBe('<p>Hé</p>');
  });

  test('attachments, and inline images next to their HTML', async () => {
    const picture = {
      ...attachment('logo.png', '\u0000\u00ff', 'image/png'),
      contentId: 'logo@x',
      disposition: 'inline' as const,
    };
    const raw = await build({
      html: '<img src="cid:logo@x">',
      attachments: [picture, attachment('Rëchnung.pdf', '%PDF')],
    });
    const parsed = await simpleParser(raw, { skipImageLinks: true });
    expect(
      parsed.attachments.map(({ filename, contentType, cid, content, related }) => ({
        filename,
        contentType,
        cid,
        content: content.toString('latin1'),
        related,
      })),
    ).toEqual([
      {
        filename: 'logo.png',
        contentType: 'image/png',
        cid: 'logo@x',
        content: '\u0000\u00ff',
        related: true,
      },
      {
        filename: 'Rëchnung.pdf',
        contentType: 'application/pdf',
        cid: undefined,
        content: '%PDF',
        related: undefined,
      },
    ]);
    expect(raw).toContain('multipart/related');
  });

  test('any text unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', maxLength: 400 }), async (text) => {
        const raw = await build({ text });
        expect(raw).not.toMatch(/[^\r]\n|\r[^\n]|[\u0080-\u00ff]/);
        const parsed = await simpleParser(raw);
        expect((parsed.text ?? '').trimEnd()).toBe(text.replace(/\r\n?/g, '\n').trimEnd());
      }),
      { numRuns: 60 },
    );
  });

  test('text derived from HTML if there is only HTML', async () => {
    const parsed = await parse({
      text: null,
      html: '<h1>Hi</h1><p>See <a href="https://x.test">this</a></p>',
    });
    expect(parsed.text).toBe('Hi\n\nSee this <https://x.test>');
    // Nested too deep: truncated, or without tags if the conversion times out on a busy machine.
    expect(['', 'deep']).toContain(htmlToText(`${'<div>'.repeat(50_000)}deep`).trim());
  });

  test('an error if the stream of an attachment fails', async () => {
    const broken = { ...attachment('a.bin', ''), open: () => Promise.reject(new Error('storage is down')) };
    await expect(build({ attachments: [broken] })).rejects.toThrow('storage is down');
  });
});

describe('no header injection', () => {
  const hostile = fc.oneof(
    fc.string(),
    fc.string().map((text) => `x\r\nBcc: victim@example.com\r\n${text}`),
    fc.string().map((text) => `${text}\n\nbody`),
    fc.constantFrom(
      'a\rX-Evil: 1',
      'a\u0000b',
      '=?utf-8?q?=0D=0ABcc:_v@x?=',
      '\u2028Bcc: x',
      '\u0085Bcc: x',
      '"',
    ),
  );

  test('through names, subject or ids', async () => {
    const benign = fieldNames(
      await build({ cc: [{ email: 'c@example.com', name: 'x' }], inReplyTo: 'a@b', references: ['a@b'] }),
    );
    await fc.assert(
      fc.asyncProperty(hostile, hostile, hostile, async (name, subject, id) => {
        const raw = await build({
          from: { email: 'agent@agents.test', name },
          cc: [{ email: 'c@example.com', name }],
          subject: `s${subject}`,
          inReplyTo: `a${id}@b`,
          references: [`a${id}@b`],
        });
        expect(fieldNames(raw).sort()).toEqual([...benign].sort());
      }),
      { numRuns: 200 },
    );
  });

  test.each([
    ['Bcc', 'victim@example.com'],
    ['Content-Type', 'text/html'],
    ['DKIM-Signature', 'x'],
    ['X-A\r\nBcc', 'victim@example.com'],
    ['X-A: 1', 'x'],
    ['X-A', 'x\r\nBcc: victim@example.com'],
    ['X-A', 'x\u0000'],
    ['X-', 'x'],
  ])('through the custom field %j: %j', (name, value) => {
    expect(() => buildMime({ ...BASE, headers: { [name]: value } })).toThrow();
  });

  test('through name or type of a file', async () => {
    const names = fieldNames(await build({ attachments: [attachment('x', 'x')] }));
    await fc.assert(
      fc.asyncProperty(hostile, hostile, async (filename, contentType) => {
        const raw = await build({ attachments: [{ ...attachment(filename, 'x'), contentType }] });
        expect(fieldNames(raw)).toEqual(names);
        expect(raw).not.toMatch(/\r\n(Bcc|X-Evil):/i);
      }),
      { numRuns: 100 },
    );
  });
});

describe('References', () => {
  const ids = fc.array(fc.stringMatching(/^[a-z0-9]{1,120}@[a-z]{1,20}\.test$/), { maxLength: 60 });

  test('keeps the root and the newest ids within one line', () => {
    fc.assert(
      fc.property(ids, (chain) => {
        const field = buildReferencesField(chain);
        const kept = field === '' ? [] : field.split(' ').map((id) => id.slice(1, -1));
        const unique = [...new Set(chain)];
        expect(`References: ${field}`.length).toBeLessThanOrEqual(998);
        expect(kept.length).toBeLessThanOrEqual(20);
        expect(kept[0]).toBe(unique[0]);
        if (unique.length > 1) expect(kept.at(-1)).toBe(unique.at(-1));
        expect(kept.slice(1)).toEqual(kept.length > 1 ? unique.slice(-(kept.length - 1)) : []);
      }),
    );
  });

  test('keeps all ids that fit', () => {
    expect(buildReferencesField(['a@x', 'b@x', 'a@x', 'c@x'])).toBe('<a@x> <b@x> <c@x>');
    expect(buildReferencesField(['<a@x>', ' b@x\r\n'])).toBe('<a@x> <b@x>');
  });
});

function attachment(filename: string, content: string, contentType = 'application/pdf') {
  return {
    filename,
    contentType,
    contentId: null,
    disposition: 'attachment' as const,
    open: async () => Readable.from([Buffer.from(content, 'latin1')]),
  };
}
