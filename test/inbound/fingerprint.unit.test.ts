import { Readable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import { computeFingerprint } from '../../domain/inbound/fingerprint.ts';

const MAIL = [
  'From: a@b.test',
  'Message-ID: <1@b.test>',
  'DKIM-Signature: v=1;',
  '\tb=abc',
  '',
  'Text',
  '',
].join('\r\n');
const print = async (text: string, chunk = text.length) => {
  const bytes = Buffer.from(text, 'latin1');
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunk) }, (_, n) =>
    bytes.subarray(n * chunk, (n + 1) * chunk),
  );
  return computeFingerprint(Readable.from(chunks));
};
const hash = async (text: string, chunk?: number) => (await print(text, chunk)).sha256.toString('hex');

describe('the fingerprint of a message', () => {
  test.each([
    'Received: from x by y; Mon, 1 Jan 2026 00:00:00 +0000\r\n',
    'Received: from x\r\n\tby y;\r\n\tMon, 1 Jan 2026 00:00:00 +0000\r\n',
    'RETURN-PATH: <a@b.test>\r\n',
    'Delivered-To: agent@mail.test\r\n',
    'Authentication-Results: mx; spf=pass\r\n',
    'ARC-Seal: i=1; a=rsa-sha256\r\nARC-Message-Signature: i=1\r\nARC-Authentication-Results: i=1; mx\r\n',
    'X-Spam-Status: No\r\n',
    'X-Google-Trace-Id: 1\r\n',
  ])('is the same with %j', async (trace) => {
    expect(await hash(trace + MAIL)).toBe(await hash(MAIL));
  });

  test.each([
    ['another Message-ID', MAIL.replace('<1@', '<2@')],
    ['another text', MAIL.replace('Text', 'Test')],
    ['another signature', MAIL.replace('abc', 'abd')],
    ['a trace field’s name in the text', MAIL.replace('Text', 'Received: x\r\nText')],
    ['another field', `X-Mailer: m\r\n${MAIL}`],
  ])('differs with %s', async (_, other) => {
    expect(await hash(other)).not.toBe(await hash(MAIL));
  });

  test('does not depend on the chunks', async () => {
    const long = `Received: x\r\n${MAIL}${'line\r\n'.repeat(10_000)}`;
    for (const chunk of [1, 7, 65_536]) expect(await hash(long, chunk)).toBe(await hash(long));
  });

  test.each(['', '\r\n', 'Received: x', 'no header at all', '\n\nbody', 'a'.repeat(3_000_000)])(
    'exists for any input',
    async (text) => {
      expect(await hash(text, 60_000)).toMatch(/^[0-9a-f]{64}$/);
    },
  );

  test('detects a DKIM signature', async () => {
    expect(await print(MAIL)).toMatchObject({ isSigned: true });
    expect(await print('Subject: x\r\n\r\nDKIM-Signature: in the text')).toMatchObject({ isSigned: false });
  });
});
