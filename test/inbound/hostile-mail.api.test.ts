import { randomInt } from 'node:crypto';
import { Readable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createAuthenticator } from '../../domain/inbound/mail-authentication.ts';
import { threadTimeMs } from '../support/cpu-time.ts';
import { eventually } from '../support/eventually.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { createTestReceiptService } from '../support/mail-services.ts';
import { countRows, query } from '../support/query.ts';
import { useWorkerDatabase } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { TIME_FACTOR } from '../support/time-factor.ts';

/** The longest acceptable pause of the event loop: heartbeats are due every 10 s. */
const MAX_BLOCK_MS = 2_000 * TIME_FACTOR;

const database = useWorkerDatabase();

/** Random, so that PostgreSQL cannot compress it into an index row. Three octets per character. */
const randomText = (characters: number) =>
  Array.from({ length: characters }, () => String.fromCodePoint(randomInt(0x4e00, 0x9fff))).join('');
const withFile = (fields: string) =>
  mail(
    { 'Content-Type': 'multipart/mixed; boundary=b' },
    `--b\r\nContent-Disposition: attachment\r\n${fields}\r\n\r\nfile\r\n--b--\r\n`,
  );

describe('a message with values that PostgreSQL rejects', () => {
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
    { what: 'NUL in a file name', raw: withFile('Content-Type: text/plain; name="a\0b"') },
    { what: 'NUL in a content type', raw: withFile('Content-Type: a\0b/c') },
    { what: 'a subject of 300,000 tags', raw: mail({ Subject: `${'[a]'.repeat(300_000)} Re: x` }) },
    { what: 'a subject of 300,000 prefixes', raw: mail({ Subject: `${'Re:'.repeat(300_000)} x` }) },
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
    const events = await countRows(
      database.db.selectFrom('events').select('id').where('inbox_id', '=', inbox.id),
    );
    expect(events).toBe(1);
  });
});

const NO_REDACTION = { redact: async () => undefined, redactInbox: async () => null };

describe('a message that the database rejects', () => {
  test('is stored raw with a parse error and announced, instead of being retried forever', async () => {
    const announced: string[] = [];
    const { receive } = await arrangeInbox(database, {
      events: {
        ...NO_REDACTION,
        async record({ db }, { data }) {
          // SQLSTATE 22P02, as for an unforeseen value.
          if ('subject' in data && data.subject !== '') await query({ db }, sql`select 'x'::int`);
          announced.push('message_id' in data ? (data.message_id ?? '') : '');
        },
      },
    });
    const { message, outcome } = await receive(mail({ Subject: 'Unthought of' }));
    expect(outcome).toMatch(/^stored/);
    expect(message).toMatchObject({
      fromEmail: 'ada@people.example',
      subject: '',
      parseError: 'The message contains a value that cannot be stored.',
      rawKey: expect.stringMatching(/^raw\//),
    });
    expect(announced).toEqual([message?.id]);
  });

  test('is retried if the database fails', async () => {
    const { receive } = await arrangeInbox(database, {
      events: {
        ...NO_REDACTION,
        record: async () => {
          throw Object.assign(new Error('deadlock detected'), { code: '40P01' });
        },
      },
    });
    await expect(receive(mail({ Subject: 'Later' }))).rejects.toThrow('deadlock detected');
  });
});

describe('a forged message', () => {
  test('with a known Message-ID does not attract replies to the original', async () => {
    const { receive } = await arrangeInbox(database);
    const first = await receive(mail({ Subject: 'Contract', 'Message-ID': '<known@people.example>' }));
    const forged = await receive(
      mail({ From: 'eve@people.example', Subject: 'Lure', 'Message-ID': '<known@people.example>' }),
    );
    expect(forged.message?.threadId).not.toBe(first.message?.threadId);
    const reply = await receive(mail({ Subject: 'Re: Contract', 'In-Reply-To': '<known@people.example>' }));
    expect(reply.message?.threadId).toBe(first.message?.threadId);
  });

  test('without a sender does not join a thread by its subject', async () => {
    const { receive } = await arrangeInbox(database);
    const [first, second] = [
      await receive(mail({ From: '', Subject: 'Report' }), { mailFrom: '' }),
      await receive(mail({ From: '', Subject: 'Re: Report' }), { mailFrom: '' }),
    ];
    expect(second.message).toMatchObject({ fromEmail: '', automated: true });
    expect(second.message?.threadId).not.toBe(first.message?.threadId);
  });
});

describe('an expensive message', () => {
  const boundaries = (depth: number) =>
    Array.from(
      { length: depth },
      (_, n) => `Content-Type: multipart/mixed; boundary=b${n}\r\n\r\n--b${n}\r\n`,
    );

  test.each([
    {
      what: '10,000 parts',
      raw: mail({ 'Content-Type': 'multipart/mixed; boundary=b' }, '--b\r\n\r\npart\r\n'.repeat(10_000)),
    },
    {
      what: '10,000 files',
      raw: mail(
        { 'Content-Type': 'multipart/mixed; boundary=b' },
        '--b\r\nContent-Type: image/png\r\n\r\nfile\r\n'.repeat(10_000),
      ),
    },
    { what: '1,000 levels of nesting', raw: `From: a@b.example\r\n${boundaries(1_000).join('')}\r\ndeep` },
    {
      what: '1,000 nested messages',
      raw: `From: a@b.example\r\n${'Content-Type: message/rfc822\r\nContent-Disposition: inline\r\n\r\n'.repeat(1_000)}deep`,
    },
    { what: '100,000 header fields', raw: `${'X-A: b\r\n'.repeat(100_000)}\r\nbody` },
    { what: 'a header of encoded words', raw: mail({ Subject: '=?utf-8?q?a?= '.repeat(60_000) }) },
    { what: 'a To of angle brackets', raw: mail({ To: '<'.repeat(900_000) }) },
    { what: 'a To of quotes and commas', raw: mail({ To: '",(\\'.repeat(200_000) }) },
    { what: 'References of 900,000 brackets', raw: mail({ References: '<'.repeat(900_000) }) },
    {
      what: 'a content type with 300,000 parameters',
      raw: mail({ 'Content-Type': `text/plain${'; a=b'.repeat(180_000)}` }),
    },
    { what: '900,000 spaces in a field', raw: mail({ Subject: `a${' '.repeat(900_000)}b` }) },
    {
      what: 'HTML of 200,000 open elements',
      raw: mail({ 'Content-Type': 'text/html' }, '<div>'.repeat(200_000)),
    },
    {
      what: 'HTML of 60,000 open elements and a quote',
      raw: mail({ 'Content-Type': 'text/html' }, `${'<div>'.repeat(60_000)}<div class="gmail_quote">x</div>`),
    },
    { what: 'HTML of open brackets', raw: mail({ 'Content-Type': 'text/html' }, '<style'.repeat(200_000)) },
    { what: 'text of quote marks', raw: mail({}, '>'.repeat(1_000_000)) },
    {
      what: 'HTML of 10,000 links',
      raw: mail(
        { 'Content-Type': 'text/html' },
        Array.from(
          { length: 10_000 },
          (_, at) => `<a href="https://a.example/${at}">Verify your email</a>\r\n`,
        ).join(''),
      ),
    },
    { what: 'a line of 5 MB', raw: mail({}, 'Your code is 123456 '.repeat(250_000)) },
    {
      what: 'a calendar of 5 MB',
      raw: mail(
        { 'Content-Type': 'text/calendar' },
        `BEGIN:VCALENDAR\r\n${'BEGIN:VEVENT\r\nUID:1\r\nRRULE:FREQ=SECONDLY\r\nEND:VEVENT\r\n'.repeat(80_000)}`,
      ),
    },
    { what: 'text of line ends', raw: mail({}, '\r\n'.repeat(1_000_000)) },
  ])('neither fails nor blocks the process: $what', async ({ raw }) => {
    const { receive } = await arrangeInbox(database);
    const blockedMs = await threadTimeMs(async () => expect((await receive(raw)).outcome).toMatch(/^stored/));
    expect(blockedMs).toBeLessThan(MAX_BLOCK_MS);
  });
});

describe('a message with an expensive header', () => {
  const notFound = Object.assign(new Error('queryTxt ENOTFOUND'), { code: 'ENOTFOUND' });
  const authenticate = createAuthenticator({ resolve: () => Promise.reject(notFound), timeoutMs: 4_000 });
  const SIGNATURE =
    'v=1; a=rsa-sha256; c=relaxed/relaxed; d=people.example; s=s; h=from:subject:x-a; bh=YQ==; b=YQ==';

  test.each([
    { what: 'a line of 400 KB without a colon', expensive: `x-${'trace'.repeat(80_000)}`, isWhole: true },
    { what: '100,000 folded lines', expensive: `X-A: b${'\r\n b'.repeat(100_000)}`, isWhole: false },
    { what: '100,000 fields', expensive: 'X-A: b\r\n'.repeat(100_000).trimEnd(), isWhole: false },
  ])('is stored with what precedes it, and announced: $what', async ({ expensive, isWhole }) => {
    const { receive, inbox, messageOf } = await arrangeInbox(database, { authenticate });
    const raw = mail({ Subject: 'Before', 'DKIM-Signature': SIGNATURE }, 'Hello').replace(
      '\r\n\r\n',
      `\r\n${expensive}\r\n\r\n`,
    );
    // The first message loads the library that authenticates.
    await receive(mail({ 'DKIM-Signature': SIGNATURE }));
    let stored: string | undefined;
    const blockedMs = await threadTimeMs(async () => {
      stored = (await receive(raw)).receiptId;
    });
    expect(blockedMs).toBeLessThan(MAX_BLOCK_MS);
    const message = await messageOf(stored ?? '');
    expect(message).toMatchObject({
      fromEmail: 'ada@people.example',
      subject: 'Before',
      textBody: 'Hello',
      sizeBytes: raw.length,
      labels: isWhole ? [] : ['unauthenticated'],
      parseError: isWhole ? null : expect.stringMatching(/^The header has more than /),
    });
    const events = await countRows(
      database.db.selectFrom('events').select('id').where('inbox_id', '=', inbox.id),
    );
    expect(events).toBe(2);
  });
});

test('limits concurrent large messages without delaying small ones', async () => {
  const read = Promise.withResolvers<void>();
  const opened: number[] = [];
  const small = mail({ Subject: 'small' });
  const large = mail({ Subject: 'large' }, 'x'.repeat(5 * 1024 * 1024));
  const { accept, ingest } = await arrangeInbox(database, {
    storage: {
      async getStream(key) {
        const isLarge = !key.endsWith(smallId);
        if (isLarge) opened.push(opened.length);
        if (isLarge) await read.promise;
        return Readable.from([Buffer.from(isLarge ? large.replace('large', key) : small)]);
      },
      putStream: () => Promise.reject(new Error('There are no files')),
    },
  });
  const largeIds = await Promise.all(Array.from({ length: 6 }, () => accept(large)));
  const smallId = await accept(small);
  const ingesting = largeIds.map((id) => ingest.ingest(id));
  const refusals: unknown[] = [];
  for (const each of ingesting) void each.catch((error: unknown) => refusals.push(error));
  await eventually(() => expect(opened).toHaveLength(1));
  await expect(ingest.ingest(smallId)).resolves.toMatch(/^stored/);
  expect(opened).toHaveLength(1);
  // The others do not occupy the worker while they wait.
  await eventually(() => expect(refusals).toHaveLength(5));
  expect(refusals).toMatchObject(refusals.map(() => ({ name: 'NoShareError' })));
  read.resolve();
  await Promise.allSettled(ingesting);
  for (const id of largeIds) await expect(ingest.ingest(id)).resolves.toMatch(/^(stored|already processed)/);
});

test.each([
  'a\0b@mail.test',
  '\0',
  '@mail.test',
  'agent',
  '',
  '\ud800@mail.test',
  `${'a'.repeat(10_000)}@mail.test`,
])('treats an impossible address as unknown, not as a temporary failure: %j', async (address) => {
  const { outbox } = recordingOutbox();
  const receipts = createTestReceiptService({ database, outbox });
  await expect(receipts.resolve(address, address)).resolves.toBe('unknown');
});
