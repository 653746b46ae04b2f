import { beforeAll, expect, test } from '@jest/globals';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { MessageEntity } from '../../domain/messages/message.entity.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp();
let organization: TestOrganization;
let inboxId: string;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
  inboxId = (await createInbox(app.worker, organization)).id;
});

type Json = Record<string, unknown> & { id: string; thread_id: string; labels: string[] };
const call = (path: string, options: Call = {}) => app.call(path, { token: organization.token, ...options });
const post = (path: string, body: unknown) => call(path, { method: 'POST', body });
const get = async (path: string) => (await call(path)).json<Json>();
const send = async (labels: string[] = []) =>
  (
    await post(`/inboxes/${inboxId}/messages`, {
      to: [{ email: 'a@example.com' }],
      subject: 'Hello',
      text_body: 'x',
      labels,
    })
  ).json<Json>();

test('adds labels once, removes them by either path, and lists them per thread', async () => {
  const message = await send(['first']);
  const added = await post(`/messages/${message.id}/labels`, { labels: ['second', 'first', 'a/b ü'] });
  expect(added.statusCode).toBe(200);
  expect(added.json<Json>().labels).toEqual(['first', 'second', 'a/b ü']);
  expect((await get(`/threads/${message.thread_id}`)).labels).toEqual(['a/b ü', 'first', 'second']);
  const removed = await post(`/messages/${message.id}/labels/remove`, { labels: ['first', 'unknown'] });
  expect(removed.json<Json>().labels).toEqual(['second', 'a/b ü']);
  const one = await call(`/messages/${message.id}/labels/${encodeURIComponent('a/b ü')}`, {
    method: 'DELETE',
  });
  expect(one.statusCode).toBe(200);
  expect(one.json<Json>()).toMatchObject({ labels: ['second'], text_body: 'x' });
  expect(await get(`/threads/${message.thread_id}`)).toMatchObject({ labels: ['second'], message_count: 1 });
});

test('keeps a label on the thread while another message has it', async () => {
  const message = await send(['shared']);
  const row = await app.worker.db
    .selectFrom('messages')
    .select(columnsOf(MessageEntity))
    .where('id', '=', message.id)
    .executeTakeFirstOrThrow();
  const draft = await post(`/inboxes/${inboxId}/drafts`, {
    to: [{ email: 'a@example.com' }],
    text_body: 'again',
    thread_id: row.threadId,
    labels: ['shared', 'other'],
  });
  const second = (await call(`/drafts/${draft.json<Json>().id}/send`, { method: 'POST' })).json<Json>();
  await post(`/messages/${message.id}/labels/remove`, { labels: ['shared'] });
  expect(await get(`/threads/${message.thread_id}`)).toMatchObject({
    labels: ['other', 'shared'],
    message_count: 2,
  });
  await post(`/messages/${second.id}/labels/remove`, { labels: ['shared'] });
  expect((await get(`/threads/${message.thread_id}`)).labels).toEqual(['other']);
});

test('shows a received message once its spam label is removed, and records its event once', async () => {
  const message = await send();
  await app.worker.db
    .updateTable('messages')
    .set({
      direction: 'inbound',
      status: 'received',
      labels: ['spam'],
      announced: false,
      received_at: new Date(),
    })
    .where('id', '=', message.id)
    .execute();
  const events = () =>
    app.worker.db
      .selectFrom('events')
      .select(columnsOf(EventEntity))
      .where('org_id', '=', organization.organizationId)
      .where('type', '=', 'message.received')
      .execute();
  await post(`/messages/${message.id}/labels`, { labels: ['noted'] });
  expect(await events()).toEqual([]);
  const threads = async () => (await get('/threads?limit=100')).data as Json[];
  expect((await threads()).map(({ id }) => id)).not.toContain(message.thread_id);
  expect((await get(`/threads/${message.thread_id}`)).messages).toEqual([]);
  await call(`/messages/${message.id}/labels/spam`, { method: 'DELETE' });
  expect(await events()).toMatchObject([
    {
      data: { message_id: message.id, thread_id: message.thread_id, inbox_id: inboxId, subject: 'Hello' },
    },
  ]);
  expect((await threads()).map(({ id }) => id)).toContain(message.thread_id);
  await post(`/messages/${message.id}/labels`, { labels: ['spam'] });
  await post(`/messages/${message.id}/labels/remove`, { labels: ['spam'] });
  expect(await events()).toHaveLength(1);
});

test('keeps both labels of two concurrent requests', async () => {
  const message = await send();
  await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      post(`/messages/${message.id}/labels`, { labels: [`label-${index}`] }),
    ),
  );
  expect((await get(`/messages/${message.id}`)).labels).toHaveLength(8);
  expect((await get(`/threads/${message.thread_id}`)).labels).toHaveLength(8);
});

test.each([
  [{}, 'validation_error'],
  [{ labels: [] }, 'validation_error'],
  [{ labels: [''] }, 'validation_error'],
  [{ labels: ['  '] }, 'validation_error'],
  [{ labels: ['vip '] }, 'validation_error'],
  [{ labels: ['a\r\nBcc: x@y.z'] }, 'validation_error'],
  [{ labels: ['x'.repeat(65)] }, 'validation_error'],
  [{ labels: Array.from({ length: 51 }, (_, index) => `${index}`) }, 'validation_error'],
] as const)('rejects %j', async (body, code) => {
  const message = await send();
  expectProblem(await post(`/messages/${message.id}/labels`, body), code);
  expect((await get(`/messages/${message.id}`)).labels).toEqual([]);
});

test('refuses labels that only the service sets', async () => {
  const { id } = await send(['mine']);
  for (const label of ['blocked', 'unauthenticated'])
    expect(
      expectProblem(await post(`/messages/${id}/labels`, { labels: ['x', label] }), 'unprocessable'),
    ).toMatchObject({ label });
  expect((await get(`/messages/${id}`)).labels).toEqual(['mine']);
  for (const label of ['blocked', 'unauthenticated', 'spam']) {
    const content = { to: [{ email: 'a@example.com' }], text_body: 'x', labels: [label] };
    expectProblem(await post(`/inboxes/${inboxId}/messages`, content), 'unprocessable');
    expectProblem(await post(`/messages/${id}/reply`, { text_body: 'x', labels: [label] }), 'unprocessable');
    expectProblem(await post(`/inboxes/${inboxId}/drafts`, content), 'unprocessable');
    const draft = (await post(`/inboxes/${inboxId}/drafts`, { ...content, labels: [] })).json<Json>();
    expectProblem(
      await call(`/drafts/${draft.id}`, { method: 'PATCH', body: { labels: [label] } }),
      'unprocessable',
    );
  }
});

test('limits a message to 100 labels', async () => {
  const message = await send();
  const labels = (from: number) => Array.from({ length: 50 }, (_, index) => `label-${from + index}`);
  await post(`/messages/${message.id}/labels`, { labels: labels(0) });
  await post(`/messages/${message.id}/labels`, { labels: labels(50) });
  expectProblem(await post(`/messages/${message.id}/labels`, { labels: ['one more'] }), 'unprocessable');
});

test('returns 404 for an inaccessible message', async () => {
  const other = await createOrganization(app.worker);
  const message = await send();
  for (const method of ['labels', 'labels/remove'])
    expectProblem(
      await app.call(`/messages/${message.id}/${method}`, {
        method: 'POST',
        token: other.token,
        body: { labels: ['x'] },
      }),
      'not_found',
    );
});
