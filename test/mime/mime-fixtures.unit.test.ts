import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import { type ParsedMail, parseMail } from '../../domain/mime/parse-mail.ts';

const FOLDER = resolve(import.meta.dirname, '../fixtures/mime');
const names = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.eml'))
  .map((name) => name.slice(0, -'.eml'.length));

/** The `.json` of a sample. Omitted fields are not checked. */
type Expected = Partial<Omit<ParsedMail, 'attachments'>> & {
  textStart?: string;
  subjectLength?: number;
  files?: { content?: string; contentLatin1?: string }[];
};

async function read(name: string) {
  const contents: Buffer[] = [];
  const mail = await parseMail(Readable.from([readFileSync(join(FOLDER, `${name}.eml`))]), {
    consumeFile: async (_file, content) => void contents.push(await buffer(content)),
  });
  return { mail, contents };
}

describe('messages of real mail programs', () => {
  test('finds the samples', () => expect(names.length).toBeGreaterThan(45));

  test.each(names)('parses %s', async (name) => {
    const expected = JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8')) as Expected;
    const { mail, contents } = await read(name);
    const { textStart, subjectLength, files, ...fields } = expected;
    expect(mail).toMatchObject({ parseError: null, ...fields });
    if (textStart !== undefined) expect(mail.text?.slice(0, textStart.length)).toBe(textStart);
    if (subjectLength !== undefined) expect(mail.subject).toHaveLength(subjectLength);
    const expectedFiles = (files ?? []).map(({ content, contentLatin1, ...file }) => file);
    expect(mail.attachments).toMatchObject(expectedFiles);
    for (const [n, { content, contentLatin1 }] of (files ?? []).entries()) {
      if (content !== undefined) expect(contents[n]?.toString().trimEnd()).toBe(content.trimEnd());
      if (contentLatin1 !== undefined) expect(contents[n]?.toString('latin1')).toBe(contentLatin1);
    }
  });
});
