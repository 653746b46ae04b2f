import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { EventEntity } from '../../domain/webhooks/event.entity.ts';
import type { Database } from '../../platform/database/database.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { testStack } from '../support/stack.ts';
import { connect } from '../support/test-app.ts';

let database: Database;
beforeAll(async () => {
  database = await connect(testStack().postgres.workerUrl);
});
afterAll(() => database?.close());

/** Random, so that PostgreSQL cannot press it into an index row. Three octets a character. */
const randomText = (characters: number) =>
  Array.from({ length: characters }, () => String.fromCodePoint(randomInt(0x4e00, 0x9fff))).join('');
const withFile = (fields: string) =>
  mail(
    { 'Content-Type': 'multipart/mixed; boundary=b' },
    `--b\r\nContent-Disposition: attachment\r\n${fields}\r\n\r\nfile\r\n--b--\r\n`,
  );

describe('a mail made to be refused by what stores it', () => {
  test.each([
    { what: 'a Message-ID longer than an index row', raw: mail({ 'Message-ID': `<${randomText(990)}@x>` }) },
    { what: 'NUL in the address of From', raw: mail({ From: '"a" <a\0b@people.example>' }) },
    {
      what: 'NUL in From, and a reply’s subject',
      raw: mail({ From: 'a\0b@people.example', Subject: 'Re: x' }),
    },
    {
      what: 'NUL in ids',
      raw: mail({ 'Message-ID': '<a\0@x>', References: '<b\0@x>', 'In-Reply-To': '<\0>' }),
    },
    { what: 'NUL in a Content-ID', raw: withFile('Content-ID: <a\0b>') },
    { what: 'NUL in a file’s name', raw: withFile('Content-Type: text/plain; name="a\0b"') },
    { what: 'NUL in a content type', raw: withFile('Content-Type: a\0b/c') },
    { what: 'a subject of 300,000 tags', raw: mail({ Subject: `${'[a]'.repeat(300_000)} Re: x` }) },
    { what: 'a subject of 300,000 marks', raw: mail({ Subject: `${'Re:'.repeat(300_000)} x` }) },
    { what: 'a field named __proto__', raw: mail({ ['__proto__']: 'x', constructor: 'y' }) },
    { what: 'an empty From', raw: mail({ From: '' }) },
    { what: 'a group without members as From', raw: mail({ From: 'Friends:;' }) },
    { what: 'an address of 900,000 characters', raw: mail({ From: `<${'a'.repeat(900_000)}@x>` }) },
    { what: '50,000 recipients', raw: mail({ To: 'a@b.example, '.repeat(50_000) }) },
  ])('is stored and announced: $what', async ({ raw }) => {
    const { receive, inbox } = await arrangeInbox(database);
    const { message, outcome } = await receive(raw);
    expect(outcome).toMatch(/^stored/);
    expect(message).toMatchObject({ status: 'received', rawKey: expect.stringMatching(/^raw\//) });
    const events = await database.systemTransaction(({ em }) => em.count(EventEntity, { inboxId: inbox.id }));
    expect(events).toBe(1);
  });
});
