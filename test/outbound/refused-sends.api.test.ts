import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { EventEntity } from '../../domain/events/event.entity.ts';
import type { EventDataByType } from '../../domain/events/event-types.ts';
import type { Permission } from '../../domain/identity/permissions.ts';
import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { sendBurst } from '../support/burst.ts';
import { createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { countRows } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';

const app = useTestApp();
type Rejected = EventDataByType['message.rejected'];
const CONTENT = { to: [{ email: 'ada@people.example' }], subject: 'Hello', text_body: 'x' };

async function arrange() {
  const organization = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, organization);
  const as =
    (api: TestApp, token = organization.token) =>
    (path: string, body?: unknown, headers?: Record<string, string>) =>
      api.call(path, { method: 'POST', token, body, headers });
  const original = await as(app)(`/inboxes/${inbox.id}/messages`, { ...CONTENT, subject: 'AW: Question' });
  const draft = await as(app)(`/inboxes/${inbox.id}/drafts`, { ...CONTENT, subject: 'Draft' });
  const { organizationId } = organization;
  const rejected = () =>
    app.worker.db
      .selectFrom('events')
      .select(columnsOf(EventEntity))
      .where('org_id', '=', organizationId)
      .where('type', '=', 'message.rejected')
      .orderBy('id')
      .execute();
  const messages = () =>
    countRows(app.worker.db.selectFrom('messages').select('id').where('org_id', '=', organizationId));
  const sends: [string, unknown?][] = [
    [`/inboxes/${inbox.id}/messages`, CONTENT],
    [`/messages/${original.json().id}/reply`, { text_body: 'x' }],
    [`/messages/${original.json().id}/forward`, { to: [{ email: 'eve@people.example' }] }],
    [`/drafts/${draft.json().id}/send`],
  ];
  return { organization, inbox, as, rejected, messages, sends };
}

const SUBJECTS = ['Hello', 'Re: Question', 'Fwd: Question', 'Draft'];

describe('a suspended account', () => {
  test.each(['organization', 'environment'] as const)(
    '(%s) announces every kind of send',
    async (suspended) => {
      const { organization, inbox, as, rejected, messages, sends } = await arrange();
      await app.worker.systemTransaction(({ db }) =>
        suspended === 'organization'
          ? db
              .updateTable('organizations')
              .set({ status: 'suspended' })
              .where('id', '=', organization.organizationId)
              .execute()
          : db
              .updateTable('environments')
              .set({ status: 'suspended' })
              .where('id', '=', organization.productionEnvironmentId)
              .execute(),
      );
      for (const [path, body] of sends)
        expect(
          expectProblem(await as(app)(path, body, { 'idempotency-key': path }), `${suspended}_suspended`),
        ).toMatchObject({ rejection_reason: 'account_paused' });
      const events = await rejected();
      expect(events.map(({ data }) => (data as Rejected).subject)).toEqual(SUBJECTS);
      expect(events[0]).toMatchObject({
        inboxId: inbox.id,
        data: {
          inbox_id: inbox.id,
          from_address: inbox.email,
          to_addresses: ['ada@people.example'],
          rejection_reason: 'account_paused',
          rejection_detail: expect.stringContaining('suspended'),
        },
      });
      expect(await messages()).toBe(1);
      // Nothing else that is refused is a send.
      expect(
        expectProblem(await as(app)(`/inboxes/${inbox.id}/drafts`, CONTENT), `${suspended}_suspended`),
      ).not.toHaveProperty('rejection_reason');
      expect(await rejected()).toHaveLength(4);
    },
  );

  test('announces nothing to a credential that cannot send from the inbox', async () => {
    const { organization, inbox, as, rejected } = await arrange();
    const { organizationId, productionEnvironmentId: environmentId } = organization;
    const permissions: Permission[] = ['messages:read', 'drafts:write'];
    const other = await createInbox(app.worker, organization);
    const mute = await createKey(app.worker, { organizationId, permissions });
    const elsewhere = await createKey(app.worker, { organizationId, environmentId, inboxId: other.id });
    const stranger = await createOrganization(app.worker);
    await app.worker.db
      .updateTable('organizations')
      .set({ status: 'suspended' })
      .where('id', '=', anyOf([organizationId, stranger.organizationId]))
      .execute();
    for (const { token } of [mute, elsewhere, stranger])
      expectProblem(await as(app, token)(`/inboxes/${inbox.id}/messages`, CONTENT), 'organization_suspended');
    expectProblem(await as(app)(`/inboxes/${inbox.id}/messages`, { text_body: 5 }), 'organization_suspended');
    expect(await rejected()).toEqual([]);
  });
});

test('a hard limit announces each send that it refuses, with and without an Idempotency-Key', async () => {
  const { organization, inbox, as, rejected, messages, sends } = await arrange();
  const limit = { messages_sent: { own_limit: 1 } };
  const set = await app.call('/org/limits', {
    method: 'PUT',
    token: organization.token,
    body: { counters: limit },
  });
  expect([set.statusCode, set.body]).toEqual([200, expect.any(String)]);
  for (const [path, body] of sends)
    expect(expectProblem(await as(app)(path, body), 'usage_limit_exceeded')).toMatchObject({
      rejection_reason: 'rate_limited',
    });
  const events = await rejected();
  expect(events.map(({ data }) => [(data as Rejected).subject, (data as Rejected).rejection_reason])).toEqual(
    SUBJECTS.map((subject) => [subject, 'rate_limited']),
  );
  const keyed = await as(app)(sends[0]?.[0] ?? '', CONTENT, { 'idempotency-key': 'once' });
  expectProblem(keyed, 'usage_limit_exceeded');
  expect(await rejected()).toHaveLength(5);
  expect(await messages()).toBe(1);
  expect(
    (await app.call(`/inboxes/${inbox.id}/drafts`, { token: organization.token })).json().data,
  ).toHaveLength(1);
  const summary = await app.call('/metrics/summary', { token: organization.token });
  expect(summary.json()).toMatchObject({ sent: 0, rejected: 5 });
});

describe('a rate limit', () => {
  /** A burst of three, and at most one more, see the rate limiter. One more passes each second. */
  const MAX_PASSED = 4;
  let limited: TestApp;
  beforeAll(async () => {
    limited = await startTestApp({ config: { RATE_LIMIT_PER_SECOND: '1', RATE_LIMIT_BURST: '3' } });
  });
  afterAll(() => limited.close());

  test('answers 429 to all, and announces one send a second for an inbox', async () => {
    const { organization, inbox, as, rejected, messages } = await arrange();
    const path = `/inboxes/${inbox.id}/messages`;
    const { passed, refused, seconds } = await sendBurst(40, () => as(limited)(path, CONTENT));
    expect(passed).toBeLessThanOrEqual(MAX_PASSED + seconds);
    expect(refused).not.toHaveLength(0);
    for (const response of refused) {
      expect(response.json()).toMatchObject({ rejection_reason: 'rate_limited' });
      expect(response.headers).toMatchObject({ 'retry-after': '1' });
    }
    const events = await rejected();
    expect(events.length).toBeGreaterThanOrEqual(1);
    expect(events.length).toBeLessThanOrEqual(2 + seconds);
    expect(events[0]?.data).toMatchObject({ subject: 'Hello', rejection_reason: 'rate_limited' });
    expect(await messages()).toBe(1 + passed);
    const summary = await app.call('/metrics/summary', { token: organization.token });
    expect(summary.json()).toMatchObject({ rejected: events.length });
  });

  test('stays the response to a send whose body is wrong, which has no event', async () => {
    const { inbox, as, rejected } = await arrange();
    const send = as(limited);
    for (const [path, body] of [
      [`/inboxes/${inbox.id}/messages`, { to: 'nobody', text_body: 5 }],
      ['/inboxes/inb_unknown/messages', CONTENT],
      [`/inboxes/${inbox.id}/drafts`, CONTENT],
    ] as const) {
      const { passed, refused, seconds } = await sendBurst(20, () => send(path, body));
      expect(passed).toBeLessThanOrEqual(MAX_PASSED + seconds);
      expect(refused).not.toHaveLength(0);
    }
    expect(await rejected()).toEqual([]);
  });
});
