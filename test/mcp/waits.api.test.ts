import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { connectTools, REVISIONS, type ToolClient, unfence } from '../support/mcp-client.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { useTestApp } from '../support/resources.ts';
import { startTestApp } from '../support/test-app.ts';

const METRICS_TOKEN = 'metrics';
const app = useTestApp({
  config: { METRICS_TOKEN, STREAM_HEARTBEAT_MS: '200', STREAMS_PER_CREDENTIAL: '3' },
});
let organization: TestOrganization;
const open: ToolClient[] = [];
beforeAll(async () => {
  organization = await createOrganization(app.worker);
});
afterAll(async () => {
  await Promise.all(open.map((tools) => tools.close()));
});

async function arrange(revision: (typeof REVISIONS)[number] = '2026-07-28') {
  const inbox = await createInbox(app.worker, organization);
  const tools = await connectTools(app, organization.token, { revision });
  open.push(tools);
  const { receive } = await arrangeInbox(app.worker, {}, inbox);
  return { inbox, tools, receive };
}
const countWaits = async (of = app) => {
  const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
  const { body } = await of.app.inject({ url: '/metrics', headers });
  return Number(/http_open_answers (\d+)/.exec(body)?.[1]);
};
const untilWaiting = (count = 1) => eventually(async () => expect(await countWaits()).toBe(count));

describe.each(REVISIONS)('with revision %s', (revision) => {
  test('wait_for_message answers with the message that arrives, and goes on behind it', async () => {
    const { inbox, tools, receive } = await arrange(revision);
    const waiting = tools.call('wait_for_message', { inbox_id: inbox.id, timeout_seconds: 20 });
    await untilWaiting();
    const { message } = await receive(mail({ Subject: 'First' }));
    const { answer } = await waiting;
    expect(unfence(answer)).toMatchObject({
      object: 'message',
      id: message?.id,
      subject: 'First',
      since: message?.id,
    });
    const next = await tools.call('wait_for_message', {
      inbox_id: inbox.id,
      since: answer.since,
      timeout_seconds: 1,
    });
    expect(next.answer).toEqual({ object: 'timeout', timed_out: true, since: message?.id });
    await untilWaiting(0);
  });

  test('a canceled call ends its wait', async () => {
    const { inbox, tools } = await arrange(revision);
    const controller = new AbortController();
    const waiting = tools.client.callTool(
      { name: 'wait_for_message', arguments: { inbox_id: inbox.id } },
      { signal: controller.signal },
    );
    await untilWaiting();
    if (revision === '2025') await tools.close();
    else controller.abort();
    await expect(waiting).rejects.toThrow();
    await untilWaiting(0);
  });

  test('progress is told to a host that asks for it', async () => {
    const { inbox, tools } = await arrange(revision);
    const told: number[] = [];
    const result = await tools.client.callTool(
      { name: 'wait_for_message', arguments: { inbox_id: inbox.id, timeout_seconds: 7 } },
      { onprogress: ({ progress, total }) => void told.push(progress, total ?? 0) },
    );
    expect(result.structuredContent).toMatchObject({ timed_out: true });
    expect(told).toEqual([5, 7]);
  });
});

test('wait_for_code passes over mail without a code', async () => {
  const { inbox, tools, receive } = await arrange();
  const waiting = tools.call('wait_for_code', {
    inbox_id: inbox.id,
    from: 'ada@people.example',
    timeout_seconds: 20,
  });
  await untilWaiting();
  await receive(mail({ Subject: 'Hello' }, 'No number here.'));
  await receive(mail({ Subject: 'Sign in' }, 'Your verification code is 482913'));
  expect((await waiting).answer).toMatchObject({ codes: [{ value: '482913' }] });
});

test('wait_for_message in a thread takes what arrived a moment ago, and needs one of the two ids', async () => {
  const { inbox, tools, receive } = await arrange();
  const { message } = await receive(mail({ Subject: 'Thread', 'Message-ID': '<w1@people.example>' }));
  const { answer } = await tools.call('wait_for_message', { thread_id: message?.threadId });
  expect(answer.id).toBe(message?.id);
  for (const args of [{}, { inbox_id: inbox.id, thread_id: message?.threadId }])
    expect((await tools.call('wait_for_message', args)).answer.code).toBe('validation_error');
});

test('a wait that found nothing says since when to go on, and its time is a number of seconds', async () => {
  const { inbox, tools } = await arrange();
  const calledAt = Date.now();
  const { answer: early } = await tools.call('wait_for_message', { inbox_id: inbox.id, timeout_seconds: 1 });
  const since = Date.parse(String(early.since));
  // Before the call by as much as it looks back, to the second.
  expect(since - calledAt).toBeGreaterThanOrEqual(-31_000);
  expect(since - Date.now()).toBeLessThan(-30_000);
  for (const timeout of [0, -1, 1.5, '5'])
    expect(
      (await tools.call('wait_for_message', { inbox_id: inbox.id, timeout_seconds: timeout })).answer.code,
    ).toBe('validation_error');
});

test('waits take their place among those of the credential', async () => {
  const { inbox, tools } = await arrange();
  const calls = Array.from({ length: 3 }, () =>
    tools.call('wait_for_message', { inbox_id: inbox.id, timeout_seconds: 4 }),
  );
  await untilWaiting(3);
  const { isError, answer } = await tools.call('wait_for_message', {
    inbox_id: inbox.id,
    timeout_seconds: 4,
  });
  expect({ isError, code: answer.code }).toEqual({ isError: true, code: 'rate_limited' });
  await Promise.all(calls);
  await untilWaiting(0);
});

test('a subscription ends at once, and holds no place: the service announces nothing to hosts', async () => {
  const { tools } = await arrange();
  const subscription = await tools.client.listen({ toolsListChanged: true });
  expect(await subscription.closed).toBe('graceful');
});

test('a revoked key ends its waits', async () => {
  const revoked = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, revoked);
  const tools = await connectTools(app, revoked.token);
  const waiting = tools.call('wait_for_message', { inbox_id: inbox.id });
  await untilWaiting();
  await app.worker.systemTransaction(({ db }) =>
    db.updateTable('api_keys').set({ revoked_at: new Date() }).where('id', '=', revoked.keyId).execute(),
  );
  const { isError, answer } = await waiting;
  expect({ isError, code: answer.code }).toEqual({ isError: true, code: 'unauthenticated' });
  await tools.close();
});

test('a shutdown ends waits with an answer', async () => {
  const closing = await startTestApp({ config: { METRICS_TOKEN } });
  const owner = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, owner);
  const tools = await connectTools(closing, owner.token);
  const waiting = tools.call('wait_for_message', { inbox_id: inbox.id });
  await eventually(async () => expect(await countWaits(closing)).toBe(1));
  await closing.close();
  expect((await waiting).answer).toMatchObject({ timed_out: true });
  await tools.close().catch(() => {});
});
