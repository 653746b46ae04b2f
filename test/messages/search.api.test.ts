import { beforeAll, describe, expect, test } from '@jest/globals';
import { type InsertObject, sql } from 'kysely';
import { json } from '../../platform/database/json.ts';
import type { Tables } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();
let organization: TestOrganization;
let inboxId: string;
let sequence = 0;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
  inboxId = (await createInbox(app.worker, organization)).id;
});

/** Stores a message; ids increase in the order of the calls. */
async function store(
  fields: Partial<InsertObject<Tables, 'messages'>>,
  owner = organization,
  inbox = inboxId,
): Promise<string> {
  const id = newId('message');
  const threadId = newId('thread');
  const createdAt = new Date(Date.UTC(2026, 0, 1) + sequence++ * 86_400_000);
  const row = {
    org_id: owner.organizationId,
    env_id: owner.productionEnvironmentId,
    inbox_id: inbox,
  };
  await app.worker.systemTransaction(async ({ db }) => {
    await db
      .insertInto('threads')
      .values({
        ...row,
        id: threadId,
        subject: '',
        base_subject: '',
        last_message_id: id,
        last_message_at: createdAt,
        last_inbound_at: createdAt,
        last_outbound_at: null,
      })
      .execute();
    await db
      .insertInto('messages')
      .values({
        ...row,
        id,
        thread_id: threadId,
        direction: 'inbound',
        status: 'received',
        from_email: 'someone@example.com',
        from_name: null,
        to: json([{ email: 'agent@mail.test' }]),
        cc: json([]),
        bcc: json([]),
        reply_to: json([]),
        subject: '',
        headers: json({}),
        created_at: createdAt,
        ...fields,
      })
      .execute();
  });
  return id;
}

/** Adds files to a stored message. */
async function attach(messageId: string, filenames: string[]): Promise<void> {
  await app.worker.systemTransaction(async ({ db }) => {
    for (const [position, filename] of filenames.entries())
      await db
        .insertInto('attachments')
        .values({
          id: newId('attachment'),
          org_id: organization.organizationId,
          env_id: organization.productionEnvironmentId,
          inbox_id: inboxId,
          message_id: messageId,
          draft_id: null,
          position,
          filename,
          content_type: 'application/pdf',
          size_bytes: 1,
          sha256: Buffer.alloc(32),
          storage_key: `attachments/${messageId}/${position}`,
          content_id: null,
          disposition: 'attachment',
        })
        .execute();
  });
}

interface Listed {
  data: { id: string; labels: string[] }[];
  has_more: boolean;
  next_cursor: string | null;
}
const list = async (query: Record<string, string>, token = organization.token) => {
  const response = await app.call(`/inboxes/${inboxId}/messages?${new URLSearchParams(query)}`, { token });
  expect(response.statusCode).toBe(200);
  return response.json<Listed>();
};
const found = async (q: string) => (await list({ q })).data.map(({ id }) => id);

describe('search results', () => {
  let invoice: string;
  let offer: string;
  let japanese: string;
  beforeAll(async () => {
    invoice = await store({
      subject: 'Invoice 2026-17 from Müller GmbH',
      from_email: 'Billing@Mueller.example',
      from_name: 'Anna Müller',
      text_body: 'Please pay the open amount. It’s due, see https://mueller.example/pay/17',
      labels: ['finance', "it's"],
      has_attachments: true,
    });
    offer = await store({
      subject: 'Our offer',
      from_email: 'sales@acme.example',
      to: json([{ email: 'agent@mail.test', name: 'Zaphod' }]),
      cc: json([{ email: 'boss@corp.example' }]),
      text_body: 'An invoice follows. Nothing to pay now.',
    });
    await attach(invoice, ['Rechnung_17.pdf', 'März.xlsx']);
    japanese = await store({
      subject: '会議の日程',
      text_body: '東京駅で会いましょう',
      from_name: '山田太郎',
    });
    await store({
      subject: 'HTML only',
      html_body: '<style>.hidden{}</style><p class="marmalade">We met at <b>Montréal</b> station</p>',
    });
  });

  test.each<[string, () => string[]]>([
    ['invoice', () => [invoice, offer]],
    ['INVOICE pay', () => [invoice, offer]],
    ['invoice -offer', () => [invoice]],
    ['subject:invoice', () => [invoice]],
    ['"open amount"', () => [invoice]],
    ['"amount open"', () => []],
    ['muller', () => [invoice]],
    ['MÜLLER', () => [invoice]],
    ['inv*', () => [invoice, offer]],
    ['from:anna', () => [invoice]],
    ['from:billing@mueller.example', () => [invoice]],
    ['from:mueller.example', () => [invoice]],
    ['from:"anna muller"', () => [invoice]],
    ['to:zaphod', () => [offer]],
    ['to:boss@corp.example', () => [offer]],
    ['from:zaphod', () => []],
    ['label:finance', () => [invoice]],
    ["label:it's", () => [invoice]],
    ['label:financ', () => []],
    ['has:attachment', () => [invoice]],
    ['invoice -has:attachment', () => [offer]],
    ['invoice after:2026-01-02', () => [offer]],
    ['filename:rechnung', () => [invoice]],
    ['filename:rechnung_17.pdf', () => [invoice]],
    ['filename:RECH*', () => [invoice]],
    ['filename:marz', () => [invoice]],
    ['filename:draft', () => []],
    ['invoice -filename:pdf', () => [offer]],
    ['marmalade OR subject:offer OR "open amount"', () => [invoice, offer]],
    ['from:anna OR to:zaphod pay', () => [invoice, offer]],
    ['invoice before:2026-01-02', () => [invoice]],
    ['https://mueller.example/pay/17', () => [invoice]],
    ['日程', () => [japanese]],
    ['東京', () => [japanese]],
    ['from:山田', () => [japanese]],
    ['程日', () => []],
    ['montreal', () => [expect.any(String) as unknown as string]],
    ['marmalade', () => []],
    ['!!!', () => []],
    ["') or true --", () => []],
    [`'invoice' | 'offer':*`, () => [offer]],
  ])('for %s', async (q, expected) => {
    expect((await found(q)).sort()).toEqual(expected().sort());
  });

  test('rank a match in the subject first', async () => {
    expect((await found('invoice'))[0]).toBe(invoice);
  });

  test('match both the filters and q', async () => {
    expect((await list({ q: 'invoice', from: 'SALES@acme.example' })).data.map(({ id }) => id)).toEqual([
      offer,
    ]);
    expect((await list({ q: 'invoice', direction: 'outbound' })).data).toEqual([]);
    expect(
      (await list({ q: 'invoice', status: 'received', subject: 'off' })).data.map(({ id }) => id),
    ).toEqual([offer]);
    expect((await list({ to: 'boss@CORP.example' })).data.map(({ id }) => id)).toEqual([offer]);
    expect((await list({ label: 'finance' })).data.map(({ id }) => id)).toEqual([invoice]);
  });

  test.each<[Record<string, string>, () => string[]]>([
    [{ from: 'MUELLER.example' }, () => [invoice]],
    [{ from: '@mueller.example' }, () => [invoice]],
    [{ to: 'corp.example' }, () => [offer]],
    [{ from: 'example.com', to: 'corp.example' }, () => []],
    [{ from: 'ueller.example' }, () => []],
  ])('match the domain of an address: %j', async (query, expected) => {
    expect((await list(query)).data.map(({ id }) => id)).toEqual(expected());
  });
});

describe('search pages', () => {
  test('contain every match once, even across windows and while messages arrive', async () => {
    const other = await createOrganization(app.worker);
    const inbox = (await createInbox(app.worker, other)).id;
    const first = await store({ subject: 'zebra zebra', text_body: 'zebra' }, other, inbox);
    // 1,100 more messages by SQL: more than one window of 1,000.
    await query(
      app.worker,
      sql`insert into messages (id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc,
         reply_to, subject, headers, created_at, updated_at)
       select left(id, -5) || lpad(n::text, 5, '0') , org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc,
         reply_to, case when n % 7 = 0 then 'zebra' else '' end, headers, created_at, updated_at
       from messages, generate_series(1, 1100) n where id = ${first}`,
    );
    await query(
      app.worker,
      sql`update message_search set document = document || 'zebra' where inbox_id = ${inbox}`,
    );
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const path = `/inboxes/${inbox}/messages?q=zebra&limit=100${cursor ? `&cursor=${cursor}` : ''}`;
      const page = (await app.call(path, { token: other.token })).json<Listed>();
      seen.push(...page.data.map(({ id }) => id));
      if (seen.length === 300) await store({ subject: 'zebra' }, other, inbox);
      cursor = page.next_cursor ?? undefined;
    } while (cursor);
    expect(seen).toHaveLength(1101);
    expect(new Set(seen).size).toBe(1101);
    const ascending = await app.call(`/inboxes/${inbox}/messages?q=zebra&order=asc`, { token: other.token });
    expectProblem(ascending, 'validation_error');
    const oldest = await app.call(`/inboxes/${inbox}/messages?q=-nowhere+from:someone&order=asc`, {
      token: other.token,
    });
    expectProblem(oldest, 'validation_error');
  });

  test('by label are sorted by time, in both orders', async () => {
    const ids: string[] = [];
    for (let index = 0; index < 5; index += 1) ids.push(await store({ labels: ['paged'] }));
    const walk = async (order: string) => {
      const seen: string[] = [];
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page = await list({ label: 'paged', order, limit: '2', ...(cursor ? { cursor } : {}) });
        seen.push(...page.data.map(({ id }) => id));
        cursor = page.next_cursor;
      }
      return seen;
    };
    expect(await walk('asc')).toEqual(ids);
    expect(await walk('desc')).toEqual(ids.toReversed());
  });
});

test('lists hidden messages only if their label is requested', async () => {
  const spam = await store({ subject: 'lottery', labels: ['spam'] });
  expect(await found('lottery')).toEqual([]);
  expect((await list({ limit: '100' })).data.map(({ id }) => id)).not.toContain(spam);
  expect(await found('lottery label:spam')).toEqual([spam]);
  expect((await list({ label: 'spam' })).data.map(({ id }) => id)).toEqual([spam]);
});

describe('isolation', () => {
  test('never returns messages of another tenant, environment or inbox', async () => {
    const mine = await store({ subject: 'xylophone' });
    const other = await createOrganization(app.worker);
    const otherInbox = (await createInbox(app.worker, other)).id;
    await store({ subject: 'xylophone' }, other, otherInbox);
    const second = (await createInbox(app.worker, organization)).id;
    await store({ subject: 'xylophone' }, organization, second);
    const bound = await createKey(app.worker, {
      organizationId: organization.organizationId,
      environmentId: organization.productionEnvironmentId,
      inboxId,
    });
    expect(await found('xylophone')).toEqual([mine]);
    const everywhere = await app.call('/messages?q=xylophone', { token: organization.token });
    expect(everywhere.json<Listed>().data).toHaveLength(2);
    const ofInbox = await app.call('/messages?q=xylophone', { token: bound.token });
    expect(ofInbox.json<Listed>().data.map(({ id }) => id)).toEqual([mine]);
    const sandbox = await app.call('/messages?q=xylophone', {
      token: organization.token,
      headers: { 'x-env-id': organization.sandboxEnvironmentId },
    });
    expect(sandbox.json<Listed>().data).toEqual([]);
  });

  test('search_messages returns only messages of the transaction’s organization', async () => {
    const other = await createOrganization(app.worker);
    const search = app.database.transaction({ organizationId: other.organizationId }, ({ db }) =>
      query(
        { db },
        sql`select * from search_messages(${organization.organizationId}, ${organization.productionEnvironmentId}, null, ${`'${organization.productionEnvironmentId}'`}, '', null, null, null, null, null, null, false, 10)`,
      ),
    );
    await expect(search).rejects.toThrow('search_messages is for the organization of the transaction');
  });
});

describe('a code', () => {
  test('is found with and without its spaces and hyphens', async () => {
    const joined = await store({ subject: 'Sign in', text_body: 'Your code is 482913.' });
    const spaced = await store({ subject: 'Your code is 482 913' });
    const hyphenated = await store({ text_body: 'Code: 48-29-13, valid for 10 minutes' });
    await store({ text_body: 'Order 482 shipped, 914 left' });
    const all = [joined, spaced, hyphenated].sort();
    for (const q of ['482913', '482 913', '"482 913"', '482-913', 'code 48 29 13', '4 8 2 9 1 3'])
      expect({ q, ids: (await found(q)).sort() }).toEqual({ q, ids: all });
    expect(await found('482914')).toEqual([]);
    expect(await found('code -482913 minutes')).toEqual([]);
  });
});

test.each([{ from: 'bob' }, { to: 'Ada Lovelace' }])('rejects a name as a filter: %j', async (query) => {
  const response = await app.call(`/messages?${new URLSearchParams(Object.entries(query))}`, {
    token: organization.token,
  });
  expectProblem(response, 'validation_error');
});

test.each([
  'is:unread',
  'newer_than:1d',
  'in:inbox x',
  'a OR',
  'from:',
  'has:pdf',
  'before:soon',
  'x'.repeat(1001),
  'a\u0000b',
  '',
])('rejects q=%j', async (q) => {
  const response = await app.call(`/messages?${new URLSearchParams({ q })}`, { token: organization.token });
  expectProblem(response, 'validation_error');
});

test.each([
  ['a combining mark', '%CC%81'],
  ['a combining mark in a phrase', '%22%CC%81%22'],
  ['a combining mark as a prefix', '%CC%81*'],
  ['a combining mark in a subject', 'subject:%CC%81'],
  ['an unassigned code point', '%F3%B0%80%80%E0%B7%BF'],
  ['a lone surrogate', '%ED%A0%80'],
  ['a zero-width space', '%E2%80%8B'],
  ['a variation selector', '%EF%B8%8F'],
  ['punctuation', '!!!'],
])('answers a query of %s', async (_name, q) => {
  const response = await app.call(`/messages?q=${q}`, { token: organization.token });
  expect(response.statusCode).toBeLessThan(500);
  if (response.statusCode === 200) expect(response.json()).toMatchObject({ data: [] });
});

test('stores a message whose words exceed the index limit', async () => {
  const words = Array.from({ length: 25_000 }, (_, index) => `${index.toString(36)}é`).join(' ');
  const id = await store({ subject: 'enormous', text_body: words, labels: ['enormous'] });
  expect((await list({ label: 'enormous' })).data.map((message) => message.id)).toEqual([id]);
  const huge = await store({
    subject: 'x'.repeat(5000),
    text_body: `${'y'.repeat(3000)} z`,
    labels: ['huge'],
  });
  expect((await list({ label: 'huge' })).data.map((message) => message.id)).toEqual([huge]);
});
