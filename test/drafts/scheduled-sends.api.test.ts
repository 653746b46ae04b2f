import { beforeAll, describe, expect, test } from '@jest/globals';
import { SEND_SCHEDULED_DRAFT } from '../../workflows/drafts/send-scheduled-draft.contract.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();
const SEND_AT = '2030-01-01T09:00:00.000Z';
let organization: TestOrganization;
let inbox: Awaited<ReturnType<typeof createInbox>>;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
  inbox = await createInbox(app.worker, organization);
});

const get = (path: string) => app.call(path, { token: organization.token });
const post = (path: string, body: unknown, token = organization.token) =>
  app.call(path, { method: 'POST', token, body });
const sendNow = async () =>
  (
    await post(`/inboxes/${inbox.id}/messages`, {
      to: ['ada@people.example'],
      subject: 'Plan',
      text_body: 'Hi',
    })
  ).json<{
    id: string;
    thread_id: string;
  }>();

describe('send_at', () => {
  test('makes a scheduled draft of a send', async () => {
    const response = await post(`/inboxes/${inbox.id}/messages`, {
      to: ['ada@people.example'],
      subject: 'Later',
      send_at: SEND_AT,
    });
    expect(response.statusCode).toBe(202);
    expect(response.json()).toMatchObject({
      to: [{ email: 'ada@people.example' }],
      subject: 'Later',
      send_status: 'scheduled',
      send_at: SEND_AT,
    });
    expect((await get(`/drafts/${response.json().id}`)).json()).toEqual(response.json());
    expect(app.commands.filter(({ start }) => start?.workflowType === SEND_SCHEDULED_DRAFT)).toContainEqual(
      expect.objectContaining({
        start: expect.objectContaining({ input: expect.objectContaining({ draftId: response.json().id }) }),
      }),
    );
  });

  test('makes a scheduled draft of a reply, which is sent in the thread', async () => {
    const original = await sendNow();
    const response = await post(`/messages/${original.id}/reply`, { text_body: 'Soon', send_at: SEND_AT });
    expect(response.statusCode).toBe(202);
    expect(response.json()).toMatchObject({
      thread_id: original.thread_id,
      in_reply_to: original.id,
      subject: 'Re: Plan',
      text_body: expect.stringContaining('> Hi'),
      send_status: 'scheduled',
    });
    const sent = await post(`/drafts/${response.json().id}/send`, undefined);
    expect(sent.json()).toMatchObject({ thread_id: original.thread_id, draft_id: response.json().id });
  });

  test('makes a scheduled draft of a forward', async () => {
    const { id } = await sendNow();
    const response = await post(`/messages/${id}/forward`, { to: ['bob@people.example'], send_at: SEND_AT });
    expect(response.statusCode).toBe(202);
    expect(response.json()).toMatchObject({ thread_id: null, subject: 'Fwd: Plan', send_at: SEND_AT });
  });

  test('is refused without recipients, and for a time that is none', async () => {
    const path = `/inboxes/${inbox.id}/messages`;
    expectProblem(await post(path, { text_body: 'x', send_at: SEND_AT }), 'no_recipients');
    expectProblem(await post(path, { to: ['ada@people.example'], send_at: 'soon' }), 'validation_error');
    expect((await post(path, { to: ['ada@people.example'], send_at: null })).statusCode).toBe(201);
  });

  test('returns the receipt of a draft to a key that may not read drafts', async () => {
    const { token } = await createKey(app.worker, {
      organizationId: organization.organizationId,
      permissions: ['messages:send', 'messages:read'],
    });
    const body = { to: ['ada@people.example'], send_at: SEND_AT };
    const response = await post(`/inboxes/${inbox.id}/messages`, body, token);
    expect(response.statusCode).toBe(202);
    expect(Object.keys(response.json()).sort()).toEqual([
      'env_id',
      'id',
      'inbox_id',
      'object',
      'send_status',
      'version',
    ]);
  });
});

describe('a draft that was sent', () => {
  test('is a 404 that names its message, for every operation', async () => {
    const draft = (await post(`/inboxes/${inbox.id}/drafts`, { to: ['ada@people.example'] })).json<{
      id: string;
    }>();
    const sent = (await post(`/drafts/${draft.id}/send`, undefined)).json<{ id: string; draft_id: string }>();
    expect(sent.draft_id).toBe(draft.id);
    for (const response of [
      await get(`/drafts/${draft.id}`),
      await post(`/drafts/${draft.id}/send`, undefined),
      await app.call(`/drafts/${draft.id}`, { method: 'DELETE', token: organization.token }),
    ]) {
      const problem = expectProblem(response, 'not_found');
      expect(problem).toMatchObject({ message_id: sent.id, fix: expect.stringContaining(sent.id) });
    }
    const other = await createOrganization(app.worker);
    const foreign = expectProblem(await app.call(`/drafts/${draft.id}`, { token: other.token }), 'not_found');
    expect(JSON.stringify(foreign)).not.toContain(sent.id);
  });

  test('a message that was sent directly has no draft', async () => {
    expect((await get(`/messages/${(await sendNow()).id}`)).json()).toMatchObject({ draft_id: null });
  });
});

test('an inbox is found by its address, case-insensitively', async () => {
  const find = async (email: string) =>
    (await get(`/inboxes?email=${encodeURIComponent(email)}`)).json<{ data: { id: string }[] }>().data;
  expect(await find(inbox.email.toUpperCase())).toEqual([expect.objectContaining({ id: inbox.id })]);
  expect(await find('nowhere@people.example')).toEqual([]);
});
