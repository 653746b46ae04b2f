import { beforeAll, expect, test } from '@jest/globals';
import { DraftEntity } from '../../domain/drafts/draft.entity.ts';
import { createDraftService } from '../../domain/drafts/draft.service.ts';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createSendService } from '../../domain/outbound/send.service.ts';
import { applyUsageDeltas } from '../../domain/usage/apply-usage-deltas.ts';
import { createUsageService } from '../../domain/usage/usage.service.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { administerLimits, setLimit, type TestLimits } from '../support/limits.ts';
import { noApprovals, TEST_APPROVAL_MS, testUnsubscribeLinks } from '../support/mail-services.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { arrangeSending } from '../support/outbound-mail.ts';
import { expectProblem } from '../support/problems.ts';
import { countRows } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

const app = useTestApp();
let limits: TestLimits;
beforeAll(async () => {
  limits = administerLimits({ database: app.worker });
});

const mail = { to: [{ email: 'somebody@example.com' }], subject: 'One', text_body: 'Text' };

async function arrange() {
  const organization = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, organization);
  const { organizationId, token } = organization;
  const send = (headers: Record<string, string> = {}) =>
    app.call(`/inboxes/${inbox.id}/messages`, { method: 'POST', token, body: mail, headers });
  const sent = async () => (await app.call('/org/usage', { token })).json().counters.messages_sent;
  const allow = (limit: number) => setLimit(limits, organizationId, { resource: 'messages_sent', limit });
  return { organization, organizationId, token, inbox, send, sent, allow };
}

test('lets one of 50 concurrent sends take the last unit and writes nothing for the others', async () => {
  const { organizationId, send, sent, allow } = await arrange();
  await allow(3);
  await send();
  await send();
  const before = app.commands.length;
  const answers = await Promise.all(Array.from({ length: 50 }, () => send()));
  const accepted = answers.filter(({ statusCode }) => statusCode === 201);
  expect(accepted).toHaveLength(1);
  for (const answer of answers.filter(({ statusCode }) => statusCode !== 201)) {
    expectProblem(answer, 'usage_limit_exceeded');
    expect(answer.headers['retry-after']).toBeUndefined();
    expect(answer.json()).toMatchObject({
      counter: 'messages_sent',
      resets_at: expect.stringMatching(/-01T00:00:00\.000Z$/),
    });
  }
  expect(await sent()).toMatchObject({
    current: 3,
    limit: 3,
    percentage: 100,
    kind: 'hard',
    unlimited: false,
  });
  const messages = await countRows(
    app.worker.db.selectFrom('messages').select('id').where('org_id', '=', organizationId),
  );
  expect(messages).toBe(3);
  expect(app.commands.length - before).toBe(1);
});

test('counts an idempotent send once and lets a refused one be retried after the limit was raised', async () => {
  const { send, sent, allow } = await arrange();
  await allow(1);
  const first = await send({ 'idempotency-key': 'first' });
  const again = await send({ 'idempotency-key': 'first' });
  expect([first.statusCode, again.statusCode]).toEqual([201, 201]);
  expect(again.json().id).toBe(first.json().id);
  expectProblem(await send({ 'idempotency-key': 'second' }), 'usage_limit_exceeded');
  await allow(2);
  expect((await send({ 'idempotency-key': 'second' })).statusCode).toBe(201);
  expect(await sent()).toMatchObject({ current: 2, limit: 2 });
});

test('refuses nothing under a soft limit and counts deltas not applied yet', async () => {
  const { organizationId, send, sent } = await arrange();
  await limits.setTier(organizationId, 'developer', 'test');
  await setLimit(limits, organizationId, { resource: 'messages_sent', limit: 1, kind: 'soft' });
  for (let sends = 0; sends < 3; sends += 1) expect((await send()).statusCode).toBe(201);
  expect(await sent()).toMatchObject({ current: 3, limit: 1, percentage: 300, kind: 'soft' });
  await Promise.all([
    applyUsageDeltas(app.worker),
    applyUsageDeltas(app.worker),
    applyUsageDeltas(app.worker),
  ]);
  expect(await sent()).toMatchObject({ current: 3 });
});

test('enforces a custom limit even if the soft limit of the tier is lower', async () => {
  const { organizationId, token, send, sent } = await arrange();
  const counters = { messages_sent: { own_limit: 2 } };
  await app.call('/org/limits', { method: 'PUT', token, body: { counters } });
  await limits.setOverride(
    organizationId,
    { resource: 'messages_sent', limit: 1, kind: 'soft', expiresAt: null, reason: 'Downgrade' },
    'test',
  );
  expect([(await send()).statusCode, (await send()).statusCode]).toEqual([201, 201]);
  const refused = expectProblem(await send(), 'usage_limit_exceeded');
  expect(refused.fix).toMatch(/own_limit/);
  expect(await sent()).toMatchObject({ current: 2, limit: 1, kind: 'soft', percentage: 200 });
});

test('includes usage counted under a soft limit when the limit becomes hard', async () => {
  const { send, sent, allow } = await arrange();
  await send();
  await send();
  await allow(3);
  const [one, two] = await Promise.all([send(), send()]);
  expect([one?.statusCode, two?.statusCode].sort()).toEqual([201, 429]);
  expect(await sent()).toMatchObject({ current: 3 });
});

test('ignores an expired override', async () => {
  const { organizationId, send, sent } = await arrange();
  await setLimit(limits, organizationId, {
    resource: 'messages_sent',
    limit: 0,
    expiresAt: new Date(Date.now() - 1),
  });
  expect((await send()).statusCode).toBe(201);
  expect(await sent()).toMatchObject({ unlimited: true, limit: Number.MAX_SAFE_INTEGER, percentage: 0 });
});

test('keeps a scheduled draft over the limit with its error and emits message.rejected', async () => {
  const { organizationId, inbox, token, allow } = await arrange();
  await allow(0);
  const draft = (
    await app.call(`/inboxes/${inbox.id}/drafts`, {
      method: 'POST',
      token,
      body: { ...mail, send_at: new Date(Date.now() - 1_000).toISOString() },
    })
  ).json();
  const { outbox } = recordingOutbox();
  const drafts = createDraftService({
    notifications: createNotificationService({ outbox }),
    approvalMs: TEST_APPROVAL_MS,
    unsubscribeLinks: testUnsubscribeLinks,
    database: app.worker,
    outbox,
    events: createWebhookEvents({ outbox }),
  });
  const plan = await app.worker.db
    .selectFrom('drafts')
    .select(columnsOf(DraftEntity))
    .where('id', '=', draft.id)
    .executeTakeFirstOrThrow();
  expect(await drafts.sendDue(draft.id, plan.scheduleVersion)).toBe('refused');
  expect(await drafts.sendDue(draft.id, plan.scheduleVersion)).toBe('gone');
  expect((await app.call(`/drafts/${draft.id}`, { token })).json()).toMatchObject({
    send_status: 'failed',
    send_error: expect.stringMatching(/^usage_limit_exceeded: /),
  });
  const events = await app.worker.db
    .selectFrom('events')
    .select(columnsOf(EventEntity))
    .where('org_id', '=', organizationId)
    .execute();
  expect(events).toMatchObject([
    {
      type: 'message.rejected',
      data: { rejection_reason: 'rate_limited', to_addresses: ['somebody@example.com'], subject: 'One' },
    },
  ]);
});

test('counts replies, forwards and drafts like sends', async () => {
  const { inbox, token, send, sent, allow } = await arrange();
  const post = (path: string, body?: object) => app.call(path, { method: 'POST', token, body });
  const first = (await send()).json();
  expect((await post(`/messages/${first.id}/reply`, { text_body: 'More' })).statusCode).toBe(201);
  expect((await post(`/messages/${first.id}/forward`, { to: mail.to })).statusCode).toBe(201);
  const draft = (await post(`/inboxes/${inbox.id}/drafts`, mail)).json();
  expect((await post(`/drafts/${draft.id}/send`)).statusCode).toBe(201);
  expect(await sent()).toMatchObject({ current: 4 });
  await allow(4);
  const kept = (await post(`/inboxes/${inbox.id}/drafts`, mail)).json();
  expectProblem(await post(`/drafts/${kept.id}/send`), 'usage_limit_exceeded');
  expect((await app.call(`/drafts/${kept.id}`, { token })).json()).toMatchObject({ send_status: 'draft' });
  expectProblem(await post(`/messages/${first.id}/reply`, { text_body: 'More' }), 'usage_limit_exceeded');
  expect(await sent()).toMatchObject({ current: 4 });
});

test('resets the counter with the new month', async () => {
  const { inbox, scope } = await arrangeSending(app.worker);
  const { organizationId } = scope;
  let now = new Date('2031-01-31T23:59:59.990Z');
  const { outbox } = recordingOutbox();
  const options = {
    database: app.worker,
    outbox,
    events: createWebhookEvents({ outbox }),
    unsubscribeLinks: testUnsubscribeLinks,
    now: () => now,
  };
  const sends = createSendService({ ...options, drafts: noApprovals });
  const usage = createUsageService(options);
  const sendOne = () =>
    sends.send(scope, inbox.id, {
      to: [{ email: 'somebody@example.com' }],
      cc: [],
      bcc: [],
      replyTo: [],
      subject: 'One',
      textBody: 'Text',
      htmlBody: null,
      labels: [],
      headers: {},
    });
  await setLimit(limits, organizationId, { resource: 'messages_sent', limit: 1 });
  await sendOne();
  await expect(sendOne()).rejects.toMatchObject({
    code: 'usage_limit_exceeded',
    extensions: { resets_at: '2031-02-01T00:00:00.000Z' },
  });
  now = new Date('2031-02-01T00:00:00.000Z');
  await sendOne();
  await expect(sendOne()).rejects.toMatchObject({ code: 'usage_limit_exceeded' });
  const { period, counters } = await usage.getCurrent(scope);
  expect(period.start).toEqual(now);
  expect(counters.find(({ counter }) => counter === 'messages_sent')?.current).toBe(1);
  const days = await usage.getHistory(scope, new Date('2031-01-30'), new Date('2031-02-02'));
  expect(days.map(({ date, amounts }) => [date, amounts.messages_sent])).toEqual([
    ['2031-01-30', 0],
    ['2031-01-31', 1],
    ['2031-02-01', 1],
    ['2031-02-02', 0],
  ]);
});
