import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import pg from 'pg';
import {
  type FeedPosition,
  type FeedQuery,
  type FeedScope,
  getFeedEnd,
  parsePosition,
  positionOf,
  readEvents,
} from '../../domain/events/event-feed.ts';
import type { EventType } from '../../domain/events/event-types.ts';
import { json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { eventually } from '../support/eventually.ts';
import { createOrganization, type TestOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useApiDatabase, useWorkerDatabase } from '../support/resources.ts';
import { testStack } from '../support/stack.ts';

const database = useApiDatabase();
const worker = useWorkerDatabase();

const scopeOf = (organization: TestOrganization, inboxId?: string): FeedScope => ({
  organizationId: organization.organizationId,
  environmentId: organization.productionEnvironmentId,
  ...(inboxId === undefined ? {} : { inboxId }),
});

const readPage = (scope: FeedScope, query: Partial<FeedQuery> = {}) =>
  database.transaction(scope, ({ db }) => readEvents(db, scope, { limit: 100, ...query }));
const read = async (scope: FeedScope, query: Partial<FeedQuery> = {}) =>
  (await readPage(scope, query)).events;

interface Recorded {
  type?: EventType;
  inboxId?: string | null;
  environmentId?: string;
  text?: string;
}

async function record(organization: TestOrganization, event: Recorded = {}): Promise<string> {
  const id = newId('event');
  await worker.systemTransaction(async ({ db }) => {
    await db
      .insertInto('events')
      .values({
        id,
        org_id: organization.organizationId,
        env_id: event.environmentId ?? organization.productionEnvironmentId,
        inbox_id: event.inboxId === undefined ? 'inb_a' : event.inboxId,
        type: event.type ?? 'message.sent',
        data: json({ of: id, ...(event.text === undefined ? {} : { text: event.text }) }),
      })
      .execute();
  });
  return id;
}

/** Retries, because other test files write concurrently and events wait for their transactions. */
const expectRead = (scope: FeedScope, query: Partial<FeedQuery>, ids: string[]) =>
  eventually(async () => expect((await read(scope, query)).map(({ id }) => id)).toEqual(ids));

test('lists events in transaction order, in both directions and with pagination', async () => {
  const organization = await createOrganization(worker);
  const scope = scopeOf(organization);
  const ids = [];
  for (let count = 0; count < 5; count += 1) ids.push(await record(organization));
  await expectRead(scope, {}, ids);
  await expectRead(scope, { order: 'desc' }, ids.toReversed());
  const listed: string[] = [];
  let after: FeedPosition | undefined;
  for (;;) {
    const page = await read(scope, { after, limit: 2 });
    listed.push(...page.map(({ id }) => id));
    const last = page.at(-1);
    if (!last) break;
    expect(parsePosition(positionOf(last))).toBe(positionOf(last));
    expect(after === undefined || positionOf(last) > after).toBe(true);
    after = positionOf(last);
    expect(last.createdAt).toBeInstanceOf(Date);
    expect(last.data).toEqual({ of: last.id });
  }
  expect(listed).toEqual(ids);
});

test('large events make short pages that report more events', async () => {
  const organization = await createOrganization(worker);
  const scope = scopeOf(organization);
  const ids: string[] = [];
  for (const size of [100, 20_000, 100, 100, 50_000])
    ids.push(await record(organization, { text: 'x'.repeat(size) }));
  await expectRead(scope, {}, ids);
  const pages = async (query: Partial<FeedQuery>) => {
    const walked: string[][] = [];
    for (let after: FeedPosition | undefined; ; ) {
      const { events, truncated: cut } = await readPage(scope, { ...query, after, maxBytes: 10_000 });
      walked.push(events.map(({ id }) => id));
      const last = events.at(-1);
      if (!cut || !last) return walked;
      after = positionOf(last);
    }
  };
  const [a, b, c, d, e] = ids;
  expect(await pages({})).toEqual([
    [a, b],
    [c, d, e],
  ]);
  expect(await pages({ order: 'desc' })).toEqual([[e], [d, c, b], [a]]);
});

test('a page of large events reads only the events that it returns', async () => {
  const organization = await createOrganization(worker);
  const scope = scopeOf(organization);
  const ids: string[] = [];
  for (let count = 0; count < 12; count += 1)
    ids.push(await record(organization, { text: randomBytes(50_000).toString('hex') }));
  await expectRead(scope, {}, ids);
  const readPieces = (query: Partial<FeedQuery>) =>
    database.transaction(scope, async ({ db }) => {
      const before = await countPieces(db);
      const { events } = await readEvents(db, scope, { limit: 100, ...query });
      return { events: events.length, pieces: (await countPieces(db)) - before };
    });
  const all = await readPieces({});
  expect(all.events).toBe(12);
  const page = await readPieces({ maxBytes: 1 });
  expect(page.events).toBe(1);
  expect(page.pieces).toBeGreaterThan(0);
  expect(page.pieces).toBeLessThan(all.pieces / 6);
});

/** Pieces of large values that this transaction has read: PostgreSQL stores them outside the row. */
async function countPieces(db: Db): Promise<number> {
  const [row] = await query<{ count: string }>(
    { db },
    sql`select idx_tup_fetch as count from pg_stat_xact_all_tables
      where relid = (select reltoastrelid from pg_class where oid = 'events'::regclass)`,
  );
  return Number(row?.count);
}

test('does not read past an open transaction that commits late', async () => {
  const organization = await createOrganization(worker);
  const scope = scopeOf(organization);
  const late = new pg.Client({ connectionString: testStack().postgres.workerUrl });
  await late.connect();
  try {
    const first = await record(organization);
    await expectRead(scope, {}, [first]);
    const lateId = newId('event');
    await late.query('begin');
    await late.query(
      `insert into events (id, org_id, env_id, inbox_id, type, data, created_at)
       values ($1, $2, $3, 'inb_a', 'message.sent', '{}', now())`,
      [lateId, scope.organizationId, scope.environmentId],
    );
    const newer = await record(organization);
    // Ordered by id alone, the newer one would be visible now, and the late one never.
    expect((await read(scope)).map(({ id }) => id)).toEqual([first]);
    await late.query('commit');
    await expectRead(scope, {}, [first, lateId, newer]);
  } finally {
    await late.end();
  }
});

test('a reader that starts at the end also gets events of transactions that are still open', async () => {
  const organization = await createOrganization(worker);
  const scope = scopeOf(organization);
  await expectRead(scope, {}, []);
  const before = await record(organization);
  await expectRead(scope, {}, [before]);
  const end = await database.transaction(scope, ({ db }) => getFeedEnd(db));
  expect(parsePosition(end)).toBe(end);
  const next = await record(organization);
  await expectRead(scope, { after: end }, [next]);
});

test('an environment sees its own and organization-wide events, an inbox only its own', async () => {
  const organization = await createOrganization(worker);
  const { sandboxEnvironmentId: sandbox } = organization;
  const a = await record(organization, { inboxId: 'inb_a' });
  const domain = await record(organization, { type: 'domain.verified', inboxId: null });
  const b = await record(organization, { inboxId: 'inb_b' });
  const elsewhere = await record(organization, { inboxId: 'inb_c', environmentId: sandbox });
  await expectRead(scopeOf(organization), {}, [a, domain, b]);
  await expectRead({ ...scopeOf(organization), environmentId: sandbox }, {}, [domain, elsewhere]);
  await expectRead(scopeOf(organization, 'inb_a'), {}, [a]);
  await expectRead(scopeOf(organization), { inboxIds: ['inb_a', 'inb_b'] }, [a, b]);
  await expectRead(scopeOf(organization), { inboxIds: ["in'b,{}"] }, []);
  await expectRead(scopeOf(organization, 'inb_a'), { inboxIds: ['inb_b'] }, []);
  await expectRead(scopeOf(organization), { types: ['domain.verified'] }, [domain]);
  await expectRead(scopeOf(organization), { types: ['domain.verified', 'message.sent'] }, [a, domain, b]);
  await expectRead(scopeOf(await createOrganization(worker)), {}, []);
});

test('filters by time', async () => {
  const organization = await createOrganization(worker);
  const scope = scopeOf(organization);
  const id = await record(organization);
  await expectRead(scope, {}, [id]);
  const [event] = await read(scope);
  const time = event?.createdAt ?? new Date(0);
  const later = new Date(time.getTime() + 1);
  expect(await read(scope, { since: time, until: later })).toHaveLength(1);
  expect(await read(scope, { since: later })).toEqual([]);
  expect(await read(scope, { until: time })).toEqual([]);
});

test.each([
  '',
  'evt_1',
  '1.evt_1',
  '09999.evt',
  `${'9'.repeat(20)}.evt_1`,
  `${'0'.repeat(20)}.a;b`,
  'x'.repeat(200),
])('rejects the position %j', (text) => expect(parsePosition(text)).toBeUndefined());
