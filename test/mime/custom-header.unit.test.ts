import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { buildMime } from '../../domain/mime/build-mime.ts';
import { findCustomHeaderProblem } from '../../domain/mime/custom-header.ts';

describe('a caller may set', () => {
  test.each(['X-Foo', 'x-foo_bar', 'X-Foo.Bar', 'List-Unsubscribe', 'list-unsubscribe-post'])(
    '%s',
    (name) => {
      expect(findCustomHeaderProblem(name, 'value')).toBeUndefined();
    },
  );
});

describe('a caller may not set', () => {
  test.each([
    ['a field of the service', 'From', 'a@b.test'],
    ['a field without a name', 'X-', 'value'],
    ['a name with a space', 'X-A B', 'value'],
    ['a name with a colon', 'X-A:B', 'value'],
    ['a name that is not ASCII', 'X-Grüße', 'value'],
    ['no value', 'X-A', '  '],
    ['a line break', 'X-A', 'a\r\nBcc: b@c.test'],
    ['a C1 control character', 'X-A', 'a\u0085b'],
    ['a Unicode line separator', 'X-A', 'a\u2028b'],
    ['half of a surrogate pair', 'X-A', 'a\ud800b'],
    ['a long value', 'X-A', 'x'.repeat(999)],
    ['a command to SendGrid', 'X-SMTPAPI', '{}'],
    ['a command to Amazon SES', 'x-ses-configuration-set', 'other'],
    ['a command to Mailgun', 'X-Mailgun-Track', 'yes'],
    ['the token of delivery reports', 'X-Report-Token', 'bounces+x@y.test'],
  ])('%s', (_name, name, value) => {
    expect(findCustomHeaderProblem(name, value)).toEqual(expect.any(String));
  });
});

test('whatever may be set can be written', async () => {
  const value = fc.oneof(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' }), fc.string());
  const name = fc.oneof(
    fc.string({ minLength: 1, maxLength: 10 }).map((rest) => `X-${rest}`),
    fc.constantFrom('X-A', 'List-Unsubscribe'),
  );
  await fc.assert(
    fc.asyncProperty(name, value, async (field, text) => {
      if (findCustomHeaderProblem(field, text) !== undefined) return;
      const mime = buildMime({
        messageId: 'a@b.test',
        date: new Date(0),
        from: { email: 'a@b.test' },
        to: [{ email: 'c@d.test' }],
        cc: [],
        replyTo: [],
        subject: 'Subject',
        inReplyTo: null,
        references: [],
        autoSubmitted: null,
        headers: { [field]: text },
        text: 'Text',
        html: null,
      });
      const written = Buffer.concat(await mime.toArray()).toString('latin1');
      const [header = ''] = written.split('\r\n\r\n');
      expect(header.split('\r\n').filter((line) => line.startsWith(`${field}:`))).toHaveLength(1);
    }),
    { numRuns: 500 },
  );
});
