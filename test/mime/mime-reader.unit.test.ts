import { Readable } from 'node:stream';
import { expect, test } from '@jest/globals';
import { MailParser } from 'mailparser';
import { createMimeReader, MimeReader } from '../../domain/mime/mime-reader.ts';
import { parseMail } from '../../domain/mime/parse-mail.ts';

const parse = (lines: string[], encoding: BufferEncoding = 'utf8') =>
  parseMail(Readable.from([Buffer.from(lines.join('\r\n'), encoding)]), {
    consumeFile: async (_file, content) => void content.resume(),
  });

test.each([
  ['getDecoder', 0],
  ['createNode', 1],
  ['processHeaders', 1],
])('mailparser has the method %s, which the reader overrides', (name, parameters) => {
  const parser = MailParser.prototype as unknown as Record<string, (...input: unknown[]) => unknown>;
  expect(parser[name]).toHaveLength(parameters);
  expect(Object.hasOwn(MimeReader.prototype, name)).toBe(true);
});

test('mailparser calls each of them for a message', async () => {
  const calls: string[] = [];
  const reader = createMimeReader();
  for (const name of ['createNode', 'processHeaders'] as const) {
    const method = reader[name].bind(reader) as (input: never) => unknown;
    Object.assign(reader, {
      [name](input: never) {
        calls.push(name);
        return method(input);
      },
    });
  }
  reader.on('data', () => undefined);
  Readable.from(['Subject: x\r\n\r\ntext\r\n']).pipe(reader);
  await new Promise((resolve) => reader.on('end', resolve));
  expect(calls).toEqual(['createNode', 'processHeaders']);
});

test('text is decoded by the reader: its charset is detected, and flowed lines of different quote depths stay apart', async () => {
  const mail = await parse(
    [
      'Content-Type: text/plain; charset=utf-8; format=flowed',
      '',
      '> one ',
      '>> two ',
      '>> three',
      'caf\u00e9',
    ],
    'latin1',
  );
  expect(mail.text).toBe('> one\n>> two three\ncaf\u00e9');
});

test('content is decoded by the reader: octets beside quoted-printable stay as they are', async () => {
  const mail = await parse(
    [
      'Content-Type: text/plain; charset=iso-8859-1',
      'Content-Transfer-Encoding: quoted-printable',
      '',
      'caf\u00e9 =E9',
    ],
    'latin1',
  );
  expect(mail.text?.trimEnd()).toBe('caf\u00e9 \u00e9');
});

test('header fields are decoded by the reader: the first of two subjects, without its control characters', async () => {
  const mail = await parse(['Subject: caf\u00e9\u0007', 'Subject: second', '', 'x'], 'latin1');
  expect(mail.subject).toBe('caf\u00e9\ufffd');
});
