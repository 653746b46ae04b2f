import { beforeAll, describe, expect, test } from '@jest/globals';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { MessageEntity } from '../../domain/messages/message.entity.ts';
import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { recordStatements } from '../support/recorded-statements.ts';
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

describe('labels of many messages', () => {
  const change = (body: unknown) => post('/messages/labels', body);
  const results = async (body: unknown) => {
    const response = await change(body);
    expect(response.statusCode).toBe(200);
    return response.json<{ data: { message_id: string; error: { code: string } | null }[] }>().data;
  };
  const labelsOf = async (id: string) => (await get(`/messages/${id}`)).labels;

  test('are added and removed together, each message by itself, and unknown ids are named', async () => {
    const [first, second, full] = [await send(['old', 'kept']), await send(), await send()];
    const stranger = await createOrganization(app.worker);
    const foreignInbox = await createInbox(app.worker, stranger);
    const foreign = (
      await app.call(`/inboxes/${foreignInbox.id}/messages`, {
        method: 'POST',
        token: stranger.token,
        body: { to: ['a@example.com'], text_body: 'x' },
      })
    ).json<Json>();
    await app.worker.db
      .updateTable('messages')
      .set({ labels: Array.from({ length: 100 }, (_, index) => `label ${index}`) })
      .where('id', '=', full.id)
      .execute();
    const ids = [first.id, 'msg_none', second.id, foreign.id, full.id];
    expect(await results({ ids, add: ['new'], remove: ['old', 'label'] })).toEqual([
      { message_id: first.id, error: null },
      { message_id: 'msg_none', error: expect.objectContaining({ code: 'not_found', status: 404 }) },
      { message_id: second.id, error: null },
      { message_id: foreign.id, error: expect.objectContaining({ code: 'not_found' }) },
      { message_id: full.id, error: expect.objectContaining({ code: 'unprocessable', status: 422 }) },
    ]);
    expect(await labelsOf(first.id)).toEqual(['kept', 'new']);
    expect(await labelsOf(second.id)).toEqual(['new']);
    expect(await labelsOf(full.id)).toHaveLength(100);
    const { labels } = await app.worker.db
      .selectFrom('messages')
      .select('labels')
      .where('id', '=', foreign.id)
      .executeTakeFirstOrThrow();
    expect(labels).toEqual([]);
    expect((await get(`/threads/${first.thread_id}`)).labels).toEqual(['kept', 'new']);
    // The same change again changes nothing.
    const before = await get(`/messages/${first.id}`);
    expect(await results({ ids: [first.id], add: ['new'], remove: ['old'] })).toEqual([
      { message_id: first.id, error: null },
    ]);
    expect(await get(`/messages/${first.id}`)).toEqual(before);
  });

  test('of 100 messages take as many statements as of two, and announce what becomes visible', async () => {
    const created = await Promise.all(Array.from({ length: 100 }, () => send()));
    const ids = created.map(({ id }) => id);
    const count = async (some: string[], body: object) => {
      const recorded = recordStatements();
      const answers = await results({ ids: some, ...body });
      const statements = recorded.texts().filter((text) => /"(?:messages|threads|inboxes)"/.test(text));
      recorded.stop();
      expect(answers.every(({ error }) => error === null)).toBe(true);
      expect(statements.length).toBeGreaterThan(3);
      return statements.length;
    };
    const ofTwo = await count(ids.slice(0, 2), { add: ['two'] });
    expect(await count(ids, { add: ['hundred'] })).toBe(ofTwo);
    for (const id of ids.slice(0, 3)) expect(await labelsOf(id)).toContain('hundred');
    await app.worker.db
      .updateTable('messages')
      .set({ direction: 'inbound', status: 'received', labels: ['spam'], announced: false })
      .where('id', '=', anyOf(ids.slice(0, 2)))
      .execute();
    await results({ ids: ids.slice(0, 2), remove: ['spam'] });
    const events = await app.worker.db
      .selectFrom('events')
      .select('data')
      .where('type', '=', 'message.received')
      .where('org_id', '=', organization.organizationId)
      .execute();
    const announced = events.map(({ data }) => (data as { message_id: string }).message_id);
    for (const id of ids.slice(0, 2)) expect(announced.filter((each) => each === id)).toHaveLength(1);
  });

  test('of two calls at the same time are both kept, in whatever order they name the messages', async () => {
    const ids = (await Promise.all(Array.from({ length: 20 }, () => send()))).map(({ id }) => id);
    const answers = await Promise.all([
      change({ ids, add: ['one'] }),
      change({ ids: ids.toReversed(), add: ['two'] }),
      change({ ids: ids.slice(5), add: ['three'] }),
      post(`/messages/${ids[7]}/labels`, { labels: ['four'] }),
    ]);
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 200]);
    expect((await labelsOf(ids[7] ?? '')).toSorted()).toEqual(['four', 'one', 'three', 'two']);
  });

  test('in a suspended inbox are refused, and those of other inboxes changed', async () => {
    const other = await createInbox(app.worker, organization);
    const inOther = (
      await post(`/inboxes/${other.id}/messages`, { to: ['a@example.com'], text_body: 'x' })
    ).json<Json>();
    const here = await send();
    await app.worker.db
      .updateTable('inboxes')
      .set({ status: 'suspended' })
      .where('id', '=', other.id)
      .execute();
    expect(await results({ ids: [inOther.id, here.id], add: ['x'] })).toEqual([
      { message_id: inOther.id, error: expect.objectContaining({ code: 'inbox_suspended', status: 403 }) },
      { message_id: here.id, error: null },
    ]);
  });

  test.each([
    [{ ids: [], add: ['x'] }],
    [{ ids: Array.from({ length: 101 }, (_, index) => `msg_${index}`), add: ['x'] }],
    [{ ids: ['msg_none', 'msg_none'], add: ['x'] }],
    [{ ids: ['msg_none'] }],
    [{ ids: ['msg_none'], add: [], remove: [] }],
    [{ ids: ['msg_none'], add: ['a\u0000b'] }],
    [{ add: ['x'] }],
  ])('of a bad request change nothing: %j', async (body) => {
    expectProblem(await change(body), 'validation_error');
  });

  test('may not be those that only the service sets', async () => {
    const message = await send();
    expectProblem(await change({ ids: [message.id], add: ['blocked'] }), 'unprocessable');
    expect(await labelsOf(message.id)).toEqual([]);
    const { token } = await createKey(app.worker, {
      organizationId: organization.organizationId,
      permissions: ['messages:read'],
    });
    expectProblem(
      await app.call('/messages/labels', { method: 'POST', token, body: { ids: [message.id], add: ['x'] } }),
      'permission_denied',
    );
  });
});
