import { beforeAll, expect, test } from '@jest/globals';
import { CompiledQuery, sql } from 'kysely';
import { ReceiptEntity } from '../../domain/inbound/receipt.entity.ts';
import { applyUsageDeltas } from '../../domain/usage/apply-usage-deltas.ts';
import { countWithinLimit, recordUsage } from '../../domain/usage/count-usage.ts';
import type { UsageCounter } from '../../domain/usage/counters.ts';
import { sha256 } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { type Connection, typeConnection } from '../../platform/database/typed-connection.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { administerLimits, setLimit, type TestLimits } from '../support/limits.ts';
import { createMemoryStorage, createTestReceiptService } from '../support/mail-services.ts';
import { createAttachment, createInbox, createOrganization } from '../support/organizations.ts';
import { countRows, query } from '../support/query.ts';
import { recordStatements } from '../support/recorded-statements.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { untilBlocking } from '../support/until-blocking.ts';
import { arrangeDeliveries, httpAnswer } from '../support/webhook-deliveries.ts';

const app = useTestApp();
let limits: TestLimits;
beforeAll(async () => {
  limits = administerLimits({ database: app.worker });
});

const currentOf = async (token: string): Promise<Record<UsageCounter, { current: number }>> =>
  (await app.call('/org/usage', { token })).json().counters;

const count = (organizationId: string) =>
  app.worker.systemTransaction(({ db }) =>
    countWithinLimit(db, { organizationId, counter: 'messages_sent', amount: 1, at: new Date() }),
  );

test('applying deltas during concurrent counting loses nothing, counts nothing twice and refuses nothing below the limit', async () => {
  const { organizationId, token } = await createOrganization(app.worker);
  // Written as deltas, since there is no hard limit yet.
  await Promise.all(Array.from({ length: 30 }, () => count(organizationId)));
  await setLimit(limits, organizationId, { resource: 'messages_sent', limit: 60 });
  const counting = Array.from({ length: 50 }, () =>
    count(organizationId).then(
      () => 1,
      () => 0,
    ),
  );
  const applying = Array.from({ length: 5 }, () => applyUsageDeltas(app.worker));
  const accepted = (await Promise.all(counting)).reduce((sum: number, one) => sum + one, 0);
  await Promise.all(applying);
  expect(accepted).toBe(30);
  expect((await currentOf(token)).messages_sent.current).toBe(60);
  await applyUsageDeltas(app.worker);
  expect((await currentOf(token)).messages_sent.current).toBe(60);
  const [hours] = await query<{ sum: number }>(
    app.worker,
    sql`select sum(amount)::int as sum from usage_hours where org_id = ${organizationId} and counter = 'messages_sent'`,
  );
  expect(hours?.sum).toBe(60);
});

test('a refund frees quota once, even if it is applied while another change waits for the last unit', async () => {
  const { organizationId, token } = await createOrganization(app.worker);
  await setLimit(limits, organizationId, { resource: 'messages_sent', limit: 3 });
  for (let sends = 0; sends < 3; sends += 1) await count(organizationId);
  const refund = () =>
    app.worker.systemTransaction(({ db }) =>
      recordUsage(db, { organizationId, counter: 'messages_sent', amount: -1, at: new Date() }),
    );
  const result = await app.worker.systemTransaction(async ({ db }) => {
    const refundRows = sql`select id from usage_deltas where org_id = ${organizationId} and amount < 0 for update`;
    // Another test may apply it before it is locked.
    while ((await query({ db }, refundRows)).length === 0) await refund();
    await query({ db }, sql`select from usage_counters where org_id = ${organizationId} for update`);
    // The count reads the refund, then waits for this transaction, which applies the refund and uses the unit.
    const waiting = count(organizationId).catch((error: unknown) => error);
    await untilBlocking({ db });
    await query({ db }, sql`delete from usage_deltas where org_id = ${organizationId} and amount < 0`);
    await query({ db }, sql`update usage_counters set amount = 3 where org_id = ${organizationId}`);
    return { waiting };
  });
  expect(await result.waiting).toMatchObject({ code: 'usage_limit_exceeded' });
  expect((await currentOf(token)).messages_sent.current).toBe(3);
});

test('drops deltas of a deleted organization', async () => {
  const organization = await createOrganization(app.worker);
  const { organizationId } = organization;
  const inbox = await createInbox(app.worker, organization);
  await createAttachment(app.worker, inbox.id);
  await query(app.worker, sql`delete from organizations where id = ${organizationId}`);
  await applyUsageDeltas(app.worker);
  const [left] = await query<{ counters: number; deltas: number }>(
    app.worker,
    sql`select (select count(*)::int from usage_counters where org_id = ${organizationId}) as counters,
       (select count(*)::int from usage_deltas where org_id = ${organizationId}) as deltas`,
  );
  expect(left).toEqual({ counters: 0, deltas: 0 });
});

test('drops deltas of an organization whose deletion commits while they are applied', async () => {
  const { organizationId } = await createOrganization(app.worker);
  await count(organizationId);
  let applying: Promise<number> | undefined;
  await app.worker.systemTransaction(async (deletion) => {
    await query(deletion, sql`delete from organizations where id = ${organizationId}`);
    applying = applyUsageDeltas(app.worker);
    await untilBlocking(deletion);
  });
  await applying;
  expect(await query(app.worker, sql`select 1 from usage_deltas where org_id = ${organizationId}`)).toEqual(
    [],
  );
});

test('counting a send takes one additional statement under any limit', async () => {
  const organization = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, organization);
  const send = () =>
    app.call(`/inboxes/${inbox.id}/messages`, {
      method: 'POST',
      token: organization.token,
      body: { to: [{ email: 'bob@people.example' }], subject: 'Hi', text_body: 'Hello' },
    });
  const statements = recordStatements();
  try {
    for (const tier of ['enterprise', 'free'] as const) {
      await limits.setTier(organization.organizationId, tier, 'test');
      statements.clear();
      expect((await send()).statusCode).toBe(201);
      const own = statements.texts();
      expect(own.length).toBeGreaterThan(3);
      expect(
        own.filter((text) => /usage_(counters|hours|deltas)/.test(text) && !text.includes('count_api_calls')),
      ).toHaveLength(1);
    }
  } finally {
    statements.stop();
  }
});

test('does not sum usage if nothing can be refused', async () => {
  const { organizationId } = await createOrganization(app.worker);
  const change = { organizationId, counter: 'messages_sent', amount: 1, at: new Date() } as const;
  const planOf = async () => {
    const statements: CompiledQuery[] = [];
    const recording: Connection = {
      query: async (statement, values = []) => {
        const text = typeof statement === 'string' ? statement : statement.text;
        statements.push(CompiledQuery.raw(`explain (analyze) ${text}`, values));
        return { command: 'SELECT', rowCount: 0, rows: [], oid: 0, fields: [] };
      },
    };
    await countWithinLimit(typeConnection(recording), change);
    const [explain = CompiledQuery.raw('')] = statements;
    const { rows } = await app.worker.db.executeQuery<Record<string, string>>(explain);
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  };
  expect(await planOf()).toMatch(/Aggregate {2}\(cost=[^)]*\) \(never executed/);
  await limits.setTier(organizationId, 'free', 'test');
  expect(await planOf()).toMatch(/Aggregate {2}\(cost=[^)]*\) \(actual/);
});

test('matches a full count after mixed activity', async () => {
  const { organization, worker, deliveryIds } = await arrangeDeliveries(app.worker, 3);
  const { organizationId, token } = organization;
  const inbox = await createInbox(app.worker, organization);
  const post = (path: string, body?: object) => app.call(path, { method: 'POST', token, body });

  const objects = new Map<string, Buffer>();
  const storage = createMemoryStorage(objects);
  const receipts = createTestReceiptService({
    database: app.worker,
    outbox: recordingOutbox().outbox,
    storage,
  });
  const { ingest } = await arrangeInbox(app.worker, { storage }, inbox);
  const receive = async (raw: string) => {
    const rawKey = `raw/${objects.size}`;
    objects.set(rawKey, Buffer.from(raw));
    const route = await receipts.resolve(inbox.email, 'ada@people.example');
    if (typeof route === 'string' || route.kind === 'full')
      throw new Error('The address does not accept mail');
    await receipts.commit({
      rawKey,
      sizeBytes: raw.length,
      sha256: sha256(raw),
      mailFrom: 'ada@people.example',
      clientIp: '192.0.2.1',
      helo: null,
      tls: false,
      receivedAt: new Date(),
      recipients: [{ address: inbox.email, route }],
    });
    const [receipt] = await app.worker.db
      .selectFrom('inbound_receipts')
      .select(columnsOf(ReceiptEntity))
      .where('raw_key', '=', rawKey)
      .where('org_id', '=', organizationId)
      .execute();
    return ingest.ingest(receipt?.id ?? '');
  };
  const withFile = mail(
    { Subject: 'File', 'Content-Type': 'multipart/mixed; boundary=b' },
    '--b\r\n\r\nSee\r\n--b\r\nContent-Disposition: attachment; filename=a.txt\r\n\r\nsome text\r\n--b--',
  );

  const first = (await post(`/inboxes/${inbox.id}/messages`, { ...MAIL })).json();
  await Promise.all([
    receive(mail({ Subject: 'One' })),
    receive(withFile),
    post(`/messages/${first.id}/reply`, { text_body: 'More' }),
    post(`/inboxes/${inbox.id}/messages`, { ...MAIL }),
    post(`/inboxes/${inbox.id}/messages`, { to: [] }),
    createAttachment(app.worker, inbox.id),
    applyUsageDeltas(app.worker),
  ]);
  await Promise.all([receive(withFile), receive(mail({ Subject: 'One' })), applyUsageDeltas(app.worker)]);
  const { attempt } = worker(async () => httpAnswer(500));
  for (const id of [...deliveryIds, ...deliveryIds]) await attempt(id, true, 1);
  await post(`/messages/${first.id}/cancel`);
  await app.call(`/messages/${first.id}`, { method: 'DELETE', token });

  const { db } = app.worker;
  const expected = {
    // One was deleted.
    messages_sent:
      1 +
      (await countRows(
        db
          .selectFrom('messages')
          .select('id')
          .where('org_id', '=', organizationId)
          .where('direction', '=', 'outbound'),
      )),
    messages_received: await countRows(
      db
        .selectFrom('messages')
        .select('id')
        .where('org_id', '=', organizationId)
        .where('direction', '=', 'inbound'),
    ),
    webhook_deliveries: await countRows(
      db.selectFrom('webhook_delivery_attempts').select('delivery_id').where('org_id', '=', organizationId),
    ),
  };
  const [files] = await query<{ sum: number }>(
    app.worker,
    sql`select sum(size_bytes)::int as sum from attachments where org_id = ${organizationId}`,
  );
  expect(expected).toEqual({ messages_sent: 3, messages_received: 2, webhook_deliveries: 6 });
  for (const moment of ['pending', 'applied']) {
    const counters = await currentOf(token);
    expect({
      moment,
      messages_sent: counters.messages_sent.current,
      messages_received: counters.messages_received.current,
      webhook_deliveries: counters.webhook_deliveries.current,
      storage_bytes: counters.storage_bytes.current,
    }).toEqual({ moment, ...expected, storage_bytes: files?.sum });
    await applyUsageDeltas(app.worker);
  }
});

const MAIL = { to: [{ email: 'bob@people.example' }], subject: 'Hi', text_body: 'Hello' };
