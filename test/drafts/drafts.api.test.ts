import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '../../platform/ids.ts';
import { sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';

const app = useTestApp();
let organization: TestOrganization;
let inboxId: string;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
  inboxId = (await createInbox(app.worker, organization)).id;
});

type Json = Record<string, unknown> & { id: string };
const create = (body: unknown) =>
  app.call(`/inboxes/${inboxId}/drafts`, { method: 'POST', token: organization.token, body });
const draft = async (body: unknown = {}) => (await create(body)).json<Json>();
const patch = (id: string, body: unknown, headers: Record<string, string> = {}) =>
  app.call(`/drafts/${id}`, { method: 'PATCH', token: organization.token, body, headers });
const get = (id: string) => app.call(`/drafts/${id}`, { token: organization.token });
const send = (id: string) => app.call(`/drafts/${id}/send`, { method: 'POST', token: organization.token });

const WHOLE = {
  to: [{ email: 'Ann@example.test', name: 'Ann' }],
  cc: [{ email: 'cc@example.test' }],
  bcc: [{ email: 'bcc@example.test' }],
  reply_to: [{ email: 'answers@example.test' }],
  subject: 'Grüße ✉',
  text_body: 'Hello',
  html_body: '<p>Hello</p>',
  labels: ['one', 'two'],
  headers: { 'X-Campaign': '7', 'List-Unsubscribe': '<mailto:u@example.test>' },
};

describe('drafts', () => {
  test.each([
    ['an empty one', {}],
    ['a whole one', WHOLE],
    ['a scheduled one', { ...WHOLE, send_at: '2099-01-01T00:00:00Z' }],
  ])('read the same as when they were created: %s', async (_name, body) => {
    const created = await draft(body);
    expect((await get(created.id)).json()).toEqual(created);
  });

  test('may be empty; the response has every field', async () => {
    const response = await create({});
    expect(response.statusCode).toBe(201);
    expect(response.headers.etag).toBe('"1"');
    expect(response.json()).toEqual({
      object: 'draft',
      id: expect.stringMatching(/^drf_/),
      inbox_id: inboxId,
      env_id: organization.productionEnvironmentId,
      thread_id: null,
      in_reply_to: null,
      subject: null,
      to: [],
      cc: [],
      bcc: [],
      to_addresses: [],
      cc_addresses: [],
      bcc_addresses: [],
      reply_to: [],
      text_body: null,
      html_body: null,
      labels: [],
      headers: {},
      unsubscribe: false,
      attachments_meta: [],
      send_at: null,
      send_status: 'draft',
      send_error: null,
      approval: null,
      created_by: { kind: 'api_key', id: organization.keyId },
      last_edited_by: { kind: 'api_key', id: organization.keyId },
      version: 1,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
  });

  test('name who created them and who changed them last', async () => {
    const { id } = await draft({ subject: 'By the agent' });
    const { token } = await createTestSession(app.worker, organization.ownerId);
    const changed = await app.call(`/drafts/${id}`, {
      method: 'PATCH',
      token,
      body: { subject: 'By the owner' },
    });
    const people = {
      created_by: { kind: 'api_key', id: organization.keyId },
      last_edited_by: { kind: 'user', id: organization.ownerId },
    };
    expect(changed.json()).toMatchObject(people);
    expect((await get(id)).json()).toMatchObject(people);
  });

  test('return the given content, with recipients as objects and as addresses', async () => {
    const { id, ...made } = await draft({ ...WHOLE, thread_id: 'any', in_reply_to: 'string' });
    expect(made).toMatchObject({
      ...WHOLE,
      to_addresses: ['Ann@example.test'],
      cc_addresses: ['cc@example.test'],
      bcc_addresses: ['bcc@example.test'],
      thread_id: 'any',
      in_reply_to: 'string',
    });
    expect((await get(id)).json()).toEqual({ id, ...made });
  });

  test('keep omitted fields on update and clear fields set to null', async () => {
    const { id } = await draft(WHOLE);
    expect((await patch(id, { subject: 'Other' })).json()).toMatchObject({
      ...WHOLE,
      subject: 'Other',
      version: 2,
    });
    const cleared = { to: null, cc: null, subject: null, text_body: null, labels: null, headers: null };
    expect((await patch(id, cleared)).json()).toMatchObject({
      to: [],
      cc: [],
      subject: null,
      text_body: null,
      html_body: WHOLE.html_body,
      labels: [],
      headers: {},
      bcc: WHOLE.bcc,
    });
  });

  test('accept only one of two concurrent updates of the same version', async () => {
    const { id } = await draft();
    const responses = await Promise.all(
      ['a', 'b'].map((subject) => patch(id, { subject }, { 'if-match': '"1"' })),
    );
    expect(responses.map(({ statusCode }) => statusCode).sort()).toEqual([200, 412]);
  });

  test('are listed until they are deleted', async () => {
    const { id } = await draft();
    const list = async () =>
      (await app.call(`/inboxes/${inboxId}/drafts?limit=100`, { token: organization.token }))
        .json<{ data: Json[] }>()
        .data.map((item) => item.id);
    expect(await list()).toContain(id);
    const remove = await app.call(`/drafts/${id}`, { method: 'DELETE', token: organization.token });
    expect(remove.statusCode).toBe(204);
    expect(await list()).not.toContain(id);
    expectProblem(await get(id), 'not_found');
  });

  test('can be scheduled, rescheduled and unscheduled', async () => {
    const { id } = await draft({ ...WHOLE, send_at: '2190-05-05T10:00:00+02:00' });
    expect((await get(id)).json()).toMatchObject({
      send_status: 'scheduled',
      send_at: '2190-05-05T08:00:00.000Z',
    });
    expect((await patch(id, { send_at: null })).json()).toMatchObject({
      send_status: 'draft',
      send_at: null,
    });
    expectProblem(await patch(id, { send_at: 'soon' }), 'validation_error');
    expectProblem(await patch(id, { send_at: '2026-02-30T25:00:00Z' }), 'validation_error');
  });
});

describe('sending a draft', () => {
  test('turns it into a message and starts one workflow', async () => {
    const { id } = await draft(WHOLE);
    app.commands.length = 0;
    const response = await send(id);
    expect(response.statusCode).toBe(201);
    const message = response.json<Json>();
    expect(message).toMatchObject({
      id: expect.stringMatching(/^msg_/),
      thread_id: expect.stringMatching(/^thr_/),
      inbox_id: inboxId,
      direction: 'outbound',
      status: 'queued',
      ...WHOLE,
      queued_at: expect.any(String),
    });
    expect((message.recipients as unknown[]).length).toBe(3);
    expect(app.commands.map(({ start }) => start?.workflowId)).toEqual([sendMessageWorkflowId(message.id)]);
    expectProblem(await get(id), 'not_found');
    expectProblem(await send(id), 'not_found');
    expect((await app.call(`/messages/${message.id}`, { token: organization.token })).json()).toEqual(
      message,
    );
  });

  test.each([
    ['Offer', 'Re: Offer'],
    ['Re: Offer', 'Re: Offer'],
    ['AW: Offer', 'Re: Offer'],
    ['Antw: SV: RE: Offer', 'Re: Offer'],
    ['回复：Offer', 'Re: Offer'],
    [null, 'Re: Question'],
  ])('that replies with the subject %j gives it one prefix: %j', async (subject, expected) => {
    const original = await send((await draft({ ...WHOLE, subject: 'Question' })).id);
    const { id } = await draft({ ...WHOLE, subject, in_reply_to: original.json<Json>().id });
    expect((await send(id)).json()).toMatchObject({ subject: expected });
  });

  test('keeps the subject of a draft that starts a thread', async () => {
    expect((await send((await draft({ ...WHOLE, subject: 'AW: New' })).id)).json()).toMatchObject({
      subject: 'AW: New',
    });
  });

  test('succeeds once for many concurrent requests', async () => {
    const { id } = await draft(WHOLE);
    const statuses = (await Promise.all(Array.from({ length: 8 }, () => send(id)))).map(
      ({ statusCode }) => statusCode,
    );
    expect(statuses.sort()).toEqual([201, ...Array(7).fill(404)]);
  });

  test('is refused without recipients or with a missing target, without deleting the draft', async () => {
    const lonely = await draft({ subject: 'x' });
    expectProblem(await send(lonely.id), 'no_recipients');
    for (const target of [
      { thread_id: newId('thread') },
      { in_reply_to: newId('message') },
      { thread_id: 'thing' },
    ]) {
      const lost = await draft({ ...WHOLE, ...target });
      expectProblem(await send(lost.id), 'draft_target_not_found');
      expect((await get(lost.id)).statusCode).toBe(200);
    }
  });

  test('requires the permission messages:send', async () => {
    const { token } = await createKey(app.worker, {
      ...organization,
      permissions: ['drafts:read', 'drafts:write'],
    });
    const { id } = await draft(WHOLE);
    expectProblem(await app.call(`/drafts/${id}/send`, { method: 'POST', token }), 'permission_denied');
  });

  test('and to be scheduled, or changed while it is scheduled', async () => {
    const { token } = await createKey(app.worker, {
      ...organization,
      permissions: ['drafts:read', 'drafts:write'],
    });
    const sendAt = new Date(Date.now() + 3_600_000).toISOString();
    const patch = (id: string, body: object) => app.call(`/drafts/${id}`, { method: 'PATCH', token, body });
    expectProblem(
      await app.call(`/inboxes/${inboxId}/drafts`, {
        method: 'POST',
        token,
        body: { ...WHOLE, send_at: sendAt },
      }),
      'permission_denied',
    );
    const { id } = await draft(WHOLE);
    expectProblem(await patch(id, { send_at: sendAt }), 'permission_denied');
    expect((await patch(id, { subject: 'Another', send_at: null })).statusCode).toBe(200);
    const scheduled = await draft({ ...WHOLE, send_at: sendAt });
    expectProblem(await patch(scheduled.id, { to: [{ email: 'else@example.test' }] }), 'permission_denied');
    expectProblem(await patch(scheduled.id, { send_at: null }), 'permission_denied');
    expect((await get(scheduled.id)).json()).toMatchObject({ send_status: 'scheduled', version: 1 });
  });
});

describe('content validation', () => {
  test.each([
    ['no at sign', { to: [{ email: 'nobody' }] }],
    ['two addresses in one', { to: [{ email: 'a@example.test, b@example.test' }] }],
    ['a display name in the address', { to: [{ email: 'Ann <ann@example.test>' }] }],
    ['a line end in an address', { to: [{ email: 'a@example.test\r\nBcc: b@example.test' }] }],
    ['a line end in a quoted local part', { to: [{ email: '"a\r\nb"@example.test' }] }],
    ['a non-ASCII address', { to: [{ email: 'jürgen@example.test' }] }],
    ['a non-ASCII domain', { to: [{ email: 'ann@bücher.test' }] }],
    ['an IP address as domain', { to: [{ email: 'ann@[127.0.0.1]' }] }],
    ['a long local part', { to: [{ email: `${'a'.repeat(65)}@example.test` }] }],
    ['an invalid domain', { to: [{ email: 'ann@-example..test' }] }],
    ['an unknown field', { to: [{ email: 'a@example.test', title: 'Dr' }] }],
    ['a line end in a name', { to: [{ email: 'a@example.test', name: 'A\nBcc: b@example.test' }] }],
    ['a line end in the subject', { subject: 'Hello\r\nBcc: b@example.test' }],
    ['a long subject', { subject: 'x'.repeat(999) }],
    ['a line end in a header', { headers: { 'X-A': 'b\r\nBcc: c@example.test' } }],
    ['a line end in a header’s name', { headers: { 'X-A: b\r\nBcc': 'c@example.test' } }],
    ['a standard header', { headers: { From: 'ceo@example.test' } }],
    ['a header that only starts with X', { headers: { Xylophone: 'a' } }],
    [
      '51 recipients',
      { to: Array.from({ length: 51 }, (_, index) => ({ email: `a${index}@example.test` })) },
    ],
    ['a quoted local part', { to: [{ email: '"two words"@example.test' }] }],
    ['an empty header', { headers: { 'X-A': '' } }],
    ['a blank header', { headers: { 'X-A': '  ' } }],
    ['a header twice', { headers: { 'X-A': '1', 'x-a': '2' } }],
    ['a tab in a label', { labels: ['a\tb'] }],
  ])('rejects %s', async (_name, body) => {
    expectProblem(await create(body), 'validation_error');
    const message = { method: 'POST' as const, token: organization.token, body };
    expectProblem(await app.call(`/inboxes/${inboxId}/messages`, message), 'validation_error');
  });

  test.each([
    [{ to: [{ email: '"a b"@example.test' }] }, 'to[0].email', /must not be quoted/],
    [{ headers: { 'X-A': '1', 'x-a': '2' } }, 'headers["x-a"]', /X-A/],
    [{ headers: { 'X-a/b': '' } }, 'headers["X-a/b"]', /omit the header/i],
  ])('rejects %j with a fix', async (body, path, words) => {
    const problem = expectProblem(await create(body), 'validation_error');
    expect(problem.errors).toEqual([{ path, message: expect.any(String) }]);
    expect(`${problem.detail} ${problem.fix}`).toMatch(words);
  });

  test('allows 50 recipients in to, cc and bcc in total', async () => {
    const addresses = (count: number, name: string) =>
      Array.from({ length: count }, (_, index) => ({ email: `${name}${index}@example.test` }));
    expect(
      (await create({ to: addresses(20, 'a'), cc: addresses(20, 'b'), bcc: addresses(10, 'c') })).statusCode,
    ).toBe(201);
    const problem = expectProblem(
      await create({ to: addresses(20, 'a'), cc: addresses(20, 'b'), bcc: addresses(11, 'c') }),
      'validation_error',
    );
    expect(problem.detail).toContain('51');
  });

  test('accepts unusual addresses that RFC 5321 allows', async () => {
    const emails = ["o'hara+tag@example.test", 'a@localhost', 'x@xn--bcher-kva.test'];
    const created = await draft({ to: emails.map((email) => ({ email })) });
    expect(created.to_addresses).toEqual(emails);
  });
});
