import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { AGENT_PERMISSIONS } from '../../domain/identity/permissions.ts';
import { PUBLIC_COUNTS } from '../../domain/metrics/metric-counts.ts';
import { applyMetricDeltas } from '../../domain/metrics/metric-deltas.ts';
import { DAY_MS, HOUR_MS, startOfHour } from '../../domain/metrics/metric-range.ts';
import { newId } from '../../platform/ids.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { accepted, deferred, refused } from '../support/mail-services.ts';
import { createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { arrangeSending, dispatchOnce, type Sending } from '../support/outbound-mail.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { untilBlocking } from '../support/until-blocking.ts';

type Counts = Record<(typeof PUBLIC_COUNTS)[number], number>;
type Hour = Counts & { timestamp: string };

const app = useTestApp();

const report = (setup: Sending, id: string, kind: 'delivered' | 'bounced' | 'complained', position = 0) =>
  app.worker.systemTransaction((transaction) =>
    setup.outcomes.apply(transaction, id, [
      { position, kind, statusCode: kind === 'bounced' ? '5.1.1' : '2.0.0', diagnosticCode: 'reported' },
    ]),
  );

/** An organization with a key for its environment. */
async function arrange() {
  const setup = await arrangeSending(app.worker);
  const { organizationId, environmentId } = setup.inbox;
  const { token } = await createKey(app.worker, { organizationId, environmentId });
  return { ...setup, token };
}

async function activity(token: string, query = ''): Promise<Hour[]> {
  const response = await app.call(`/metrics/activity?${query}`, { token });
  expect(response.statusCode).toBe(200);
  return response.json<{ data: Hour[] }>().data;
}

const busy = (hours: Hour[]) => hours.filter((hour) => PUBLIC_COUNTS.some((name) => hour[name] > 0));

/** Creates one of every event that is counted. */
async function mixedMail(setup: Sending): Promise<void> {
  setup.transport.answerWith(async ({ recipient }) => {
    if (recipient.startsWith('unknown')) return refused;
    if (recipient.startsWith('content')) return { ...refused, scope: 'message' };
    return recipient.startsWith('later') ? deferred : accepted;
  });
  const sent = async (...to: string[]) => {
    const id = await setup.send(...to.map((name) => `${name}-${newId('message')}@people.example`));
    await dispatchOnce(setup, id);
    return id;
  };
  const [first, second, third] = [await sent('a'), await sent('b'), await sent('c', 'd')];
  await sent('unknown');
  await sent('content');
  await sent('later');
  // The relay rejects one recipient and accepts the other at the second attempt.
  const mixed = await sent('unknown', 'later');
  setup.transport.answerWith(async () => accepted);
  await dispatchOnce(setup, mixed);
  await report(setup, first ?? '', 'delivered');
  await report(setup, second ?? '', 'delivered');
  await report(setup, second ?? '', 'complained');
  await report(setup, second ?? '', 'complained');
  await report(setup, third ?? '', 'delivered', 0);
  await report(setup, third ?? '', 'bounced', 1);
  const { receive } = await arrangeInbox(app.worker, {}, setup.inbox);
  await receive(mail({ Subject: 'One', 'Message-ID': `<${newId('message')}@people.example>` }));
  await receive(mail({ Subject: 'Two', 'Message-ID': `<${newId('message')}@people.example>` }), {
    receivedAt: new Date(Date.now() - 3 * HOUR_MS),
  });
}

/** Counts computed from `messages`, by hour. */
async function fullCount(inboxId: string): Promise<Hour[]> {
  const rows = await query<Counts & { hour: Date }>(
    app.worker,
    sql`select date_trunc('hour', at, 'UTC') as hour, ${sql.join(
      PUBLIC_COUNTS.map((name) => sql`count(*) filter (where outcome = ${name})::int as ${sql.ref(name)}`),
    )}
     from messages cross join lateral (values
       ('sent', sent_at), ('delivered', delivered_at), ('bounced', bounced_at), ('complained', complained_at),
       ('rejected', case when status = 'rejected' then updated_at end),
       ('received', case when announced then received_at end)) outcomes (outcome, at)
     where inbox_id = ${inboxId} and at is not null group by 1 order by 1`,
  );
  return rows.map(({ hour, ...counts }) => ({ timestamp: hour.toISOString(), ...counts }));
}

describe('counts', () => {
  test('match the messages before and after deltas are applied, also by two concurrent sweeps', async () => {
    const setup = await arrange();
    await mixedMail(setup);
    const expected = await fullCount(setup.inbox.id);
    const total = (name: keyof Counts) => expected.reduce((sum, hour) => sum + hour[name], 0);
    expect(Object.fromEntries(PUBLIC_COUNTS.map((name) => [name, total(name)]))).toEqual({
      sent: 4,
      delivered: 3,
      bounced: 3,
      complained: 1,
      rejected: 1,
      received: 2,
    });
    const queries = ['', `inbox_id=${setup.inbox.id}`, `domain=${setup.inbox.domain.toUpperCase()}`];
    const answers = () => Promise.all(queries.map((query) => activity(setup.token, query).then(busy)));
    expect(await answers()).toEqual([expected, expected, expected]);
    await Promise.all([applyMetricDeltas(app.worker), applyMetricDeltas(app.worker)]);
    expect(await answers()).toEqual([expected, expected, expected]);
    // Some deltas applied, some pending.
    await mixedMail(setup);
    const later = await fullCount(setup.inbox.id);
    expect(await answers()).toEqual([later, later, later]);
    await applyMetricDeltas(app.worker);
    expect(await answers()).toEqual([later, later, later]);
  });

  test('remain after the messages are deleted', async () => {
    const setup = await arrange();
    await mixedMail(setup);
    const before = busy(await activity(setup.token));
    await app.worker.db.deleteFrom('messages').where('inbox_id', '=', setup.inbox.id).execute();
    expect(busy(await activity(setup.token))).toEqual(before);
    await applyMetricDeltas(app.worker);
    expect(busy(await activity(setup.token))).toEqual(before);
  });

  test('are applied beside an organization whose deletion commits meanwhile', async () => {
    const [deleted, other] = [await arrange(), await arrange()];
    await mixedMail(deleted);
    await mixedMail(other);
    const before = busy(await activity(other.token));
    const { id, organizationId } = deleted.inbox;
    let applying: Promise<number> | undefined;
    await app.worker.systemTransaction(async (deletion) => {
      await query(deletion, sql`delete from inboxes where id = ${id}`);
      applying = applyMetricDeltas(app.worker);
      await untilBlocking(deletion);
      await query(deletion, sql`delete from organizations where id = ${organizationId}`);
    });
    await applying;
    expect(busy(await activity(other.token))).toEqual(before);
    expect(await query(app.worker, sql`select from metric_deltas where inbox_id = ${id}`)).toEqual([]);
  });

  test('include a send that is rejected without creating a message', async () => {
    const setup = await arrange();
    const blocked = await app.call('/lists/send/block', {
      method: 'POST',
      token: setup.token,
      body: { entry: 'nobody@people.example' },
    });
    expect(blocked.statusCode).toBe(201);
    const refusedSend = await app.call(`/inboxes/${setup.inbox.id}/messages`, {
      method: 'POST',
      token: setup.token,
      body: { to: [{ email: 'nobody@people.example' }], subject: 'Hello', text_body: 'Hello' },
    });
    expectProblem(refusedSend, 'message_rejected');
    const summary = await app.call('/metrics/summary', { token: setup.token });
    expect(summary.json()).toMatchObject({ rejected: 1, sent: 0 });
    await applyMetricDeltas(app.worker);
    expect(busy(await activity(setup.token))).toMatchObject([{ rejected: 1 }]);
  });

  test('include hidden messages once they are shown, in the hour they were received', async () => {
    const setup = await arrange();
    const { receive } = await arrangeInbox(
      app.worker,
      { scanForSpam: async () => ({ verdict: 'spam', score: 20 }) },
      setup.inbox,
    );
    const receivedAt = new Date(Date.now() - 5 * HOUR_MS);
    const { message } = await receive(mail({ Subject: 'Buy' }), { receivedAt });
    expect(busy(await activity(setup.token))).toEqual([]);
    const label = (method: 'DELETE' | 'POST', path: string, body?: object) =>
      app.call(`/messages/${message?.id}/labels${path}`, {
        method,
        token: setup.token,
        ...(body && { body }),
      });
    expect((await label('DELETE', '/spam')).statusCode).toBe(200);
    // Hidden and shown again, it still counts once.
    await label('POST', '', { labels: ['spam'] });
    await label('DELETE', '/spam');
    expect(busy(await activity(setup.token))).toMatchObject([
      { timestamp: startOfHour(receivedAt).toISOString(), received: 1 },
    ]);
  });

  test('assign a message and its report to different hours, even in one change', async () => {
    const setup = await arrange();
    const id = await setup.send('ada@people.example');
    const [early, late] = [new Date(Date.now() - 4 * HOUR_MS), new Date(Date.now() - 2 * HOUR_MS)];
    await app.worker.db
      .updateTable('messages')
      .set({ status: 'delivered', sent_at: early, delivered_at: late })
      .where('id', '=', id)
      .execute();
    expect(busy(await activity(setup.token))).toMatchObject([
      { timestamp: startOfHour(early).toISOString(), sent: 1, delivered: 0 },
      { timestamp: startOfHour(late).toISOString(), sent: 0, delivered: 1 },
    ]);
  });
});

describe('the credential', () => {
  test('sees only its environment and inbox', async () => {
    const setup = await arrange();
    const { organizationId, environmentId } = setup.inbox;
    const other = await createInbox(
      app.worker,
      { organizationId, productionEnvironmentId: environmentId },
      { domain: `${newId('message').slice(-12)}.test` },
    );
    await dispatchOnce(setup, await setup.send('ada@people.example'));
    const bound = await createKey(app.worker, { organizationId, environmentId, inboxId: other.id });
    expect(busy(await activity(bound.token))).toEqual([]);
    expect(busy(await activity(bound.token, `domain=${setup.inbox.domain}`))).toEqual([]);
    expectProblem(
      await app.call(`/metrics/activity?inbox_id=${setup.inbox.id}`, { token: bound.token }),
      'not_found',
    );
    const own = await createKey(app.worker, { organizationId, environmentId, inboxId: setup.inbox.id });
    expect(busy(await activity(own.token))).toMatchObject([{ sent: 1 }]);
    expect(busy(await activity(setup.token, `domain=${other.domain}`))).toEqual([]);
    expect(busy(await activity(setup.token, `domain=${other.domain}&inbox_id=${setup.inbox.id}`))).toEqual(
      [],
    );
    const stranger = await createOrganization(app.worker);
    for (const path of ['activity', 'summary', 'deliverability'])
      expectProblem(
        await app.call(`/metrics/${path}?inbox_id=${setup.inbox.id}`, { token: stranger.token }),
        'not_found',
      );
    expect(busy(await activity(stranger.token, `domain=${setup.inbox.domain}`))).toEqual([]);
    expectProblem(await app.call('/metrics/summary?inbox_id=inb_none', { token: setup.token }), 'not_found');
  });

  test('can be an agent', () => {
    expect(AGENT_PERMISSIONS).toContain('metrics:read');
  });
});

describe('the range', () => {
  test('defaults to the last 24 hours and includes every hour', async () => {
    const { token } = await createOrganization(app.worker);
    const hours = await activity(token);
    expect(hours).toHaveLength(24);
    const times = hours.map(({ timestamp }) => Date.parse(timestamp));
    expect(times).toEqual(times.map((_, index) => (times[0] ?? 0) + index * HOUR_MS));
    const some = await activity(token, 'start=2026-03-01T10:30:00Z&end=2026-03-01T13:00:00%2B01:00');
    expect(some.map(({ timestamp }) => timestamp)).toEqual([
      '2026-03-01T10:00:00.000Z',
      '2026-03-01T11:00:00.000Z',
    ]);
  });

  test('takes dates, of which the last is included to its end', async () => {
    const { token } = await arrange();
    const day = await activity(token, 'start=2026-10-21&end=2026-10-21');
    expect(day).toHaveLength(24);
    expect([day[0]?.timestamp, day[23]?.timestamp]).toEqual([
      '2026-10-21T00:00:00.000Z',
      '2026-10-21T23:00:00.000Z',
    ]);
    expect(await activity(token, 'start=2026-10-01&end=2026-10-31')).toHaveLength(31 * 24);
    expect(await activity(token, 'start=2026-10-21&end=2026-10-21T06:00:00Z')).toHaveLength(6);
    for (const path of ['summary', 'deliverability'])
      expect((await app.call(`/metrics/${path}?start=2026-10-21&end=2026-10-22`, { token })).statusCode).toBe(
        200,
      );
    for (const start of [
      '2026-02-30',
      '2026-13-01',
      '2026-11',
      'yesterday',
      '2026-02-30T00:00:00Z',
      '2026-11-21T25:00:00Z',
    ])
      expectProblem(await app.call(`/metrics/summary?start=${start}`, { token }), 'validation_error');
  });

  test('is at most 31 days for activity and 366 for sums', async () => {
    const { token } = await createOrganization(app.worker);
    const from = (days: number, path: string) => {
      const end = new Date('2026-06-01T10:30:00Z');
      const start = new Date(end.getTime() - days * DAY_MS);
      return app.call(`/metrics/${path}?start=${start.toISOString()}&end=${end.toISOString()}`, { token });
    };
    expect((await from(31, 'activity')).json<{ data: Hour[] }>().data).toHaveLength(31 * 24 + 1);
    expectProblem(await from(31.01, 'activity'), 'unprocessable');
    expect((await from(366, 'summary')).statusCode).toBe(200);
    expectProblem(await from(367, 'deliverability'), 'unprocessable');
  });

  test.each([
    ['start=2026-03-02T00:00:00Z&end=2026-03-01T00:00:00Z', 'unprocessable'],
    ['start=2026-03-01T00:00:00Z&end=2026-03-01T00:00:00Z', 'unprocessable'],
    ['start=9999-12-31T23:00:00Z&end=9999-12-31T23:59:59Z', 'unprocessable'],
    ['start=2999-03-01T00:00:00Z', 'unprocessable'],
    ['start=yesterday', 'validation_error'],
    ['start=0001-01-01T00:00:00Z', 'validation_error'],
    ['domain=', 'validation_error'],
    ['days=3', 'validation_error'],
  ] as const)('%s is refused as %s', async (query, code) => {
    const { token } = await createOrganization(app.worker);
    expectProblem(await app.call(`/metrics/activity?${query}`, { token }), code);
  });
});

test('returns all three in one response', async () => {
  const setup = await arrange();
  await mixedMail(setup);
  const response = await app.call('/metrics', { token: setup.token });
  const { activity: hours, summary, deliverability } = response.json();
  expect(hours.data).toHaveLength(24);
  expect(summary).toEqual({
    object: 'metrics_summary',
    sent: 4,
    delivered: 3,
    bounced: 3,
    complained: 1,
    rejected: 1,
    received: 2,
  });
  // Five attempted: one of the bounces was never sent.
  expect(deliverability).toMatchObject({
    score: null,
    sample_size: 5,
    bounce_rate: 0.6,
    delivery_rate: 0.6,
    rejection_rate: 0.166667,
    warnings: [expect.stringContaining('at least 20 sends')],
  });
  for (const path of ['summary', 'deliverability'])
    expect((await app.call(`/metrics/${path}`, { token: setup.token })).json()).toEqual(
      response.json()[path],
    );
});
