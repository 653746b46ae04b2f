import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { overduePurges } from '../../domain/inboxes/inbox-purge.ts';
import type { MessageStatus } from '../../domain/messages/message.entity.ts';
import { purgeServiceOf } from '../support/inbox-purge.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp();
let organization: TestOrganization;
let inboxId: string;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
  inboxId = (await createInbox(app.worker, organization)).id;
});

type Json = Record<string, unknown> & { id: string; thread_id: string };
const call = (path: string, options: Call = {}) => app.call(path, { token: organization.token, ...options });
const remove = (path: string) => call(path, { method: 'DELETE' });
const get = async (path: string) => (await call(path)).json<Json>();

/** Inserts a sent message with an attachment, in the given thread if there is one. */
async function sent({
  inbox = inboxId,
  threadId,
  status = 'sent',
}: {
  inbox?: string;
  threadId?: string;
  status?: MessageStatus;
} = {}): Promise<Json> {
  const draft = await call(`/inboxes/${inbox}/drafts`, {
    method: 'POST',
    body: {
      to: [{ email: 'a@example.com' }],
      subject: 'Hello',
      text_body: 'words',
      ...(threadId ? { thread_id: threadId } : {}),
    },
  });
  const message = (await call(`/drafts/${draft.json<Json>().id}/send`, { method: 'POST' })).json<Json>();
  await app.worker.db
    .updateTable('messages')
    .set({ status, tracked: true, raw_key: `raw/sent/${message.id}.eml` })
    .where('id', '=', message.id)
    .execute();
  return message;
}

describe('deleting a message', () => {
  test('deletes its search entry, ends its tracking and refreshes its thread', async () => {
    const first = await sent();
    const second = await sent({ threadId: first.thread_id });
    expect((await remove(`/messages/${second.id}`)).statusCode).toBe(204);
    expectProblem(await call(`/messages/${second.id}`), 'not_found');
    expectProblem(await remove(`/messages/${second.id}`), 'not_found');
    expect(await get(`/threads/${first.thread_id}`)).toMatchObject({
      message_count: 1,
      last_message_id: first.id,
    });
    expect(app.commands.at(-1)).toMatchObject({ signal: { workflowId: `delivery/${second.id}` } });
    const found = await get(`/messages?q=words&thread_id=${first.thread_id}`);
    expect(found.data).toMatchObject([{ id: first.id }]);
  });

  test('deletes the thread with its last message', async () => {
    const message = await sent();
    await remove(`/messages/${message.id}`);
    expectProblem(await call(`/threads/${message.thread_id}`), 'not_found');
  });

  test.each<MessageStatus>(['queued', 'sending', 'deferred', 'needs_attention'])(
    'is refused while the message is %s',
    async (status) => {
      const message = await sent({ status });
      expectProblem(await remove(`/messages/${message.id}`), 'conflict');
      expectProblem(await remove(`/threads/${message.thread_id}`), 'conflict');
      expect((await get(`/messages/${message.id}`)).status).toBe(status);
    },
  );

  test('returns 404 for a message of another organization', async () => {
    const message = await sent();
    const other = await createOrganization(app.worker);
    for (const path of [`/messages/${message.id}`, `/threads/${message.thread_id}`])
      expectProblem(await app.call(path, { method: 'DELETE', token: other.token }), 'not_found');
  });

  test('succeeds once for two concurrent requests', async () => {
    const message = await sent();
    const responses = await Promise.all([
      remove(`/messages/${message.id}`),
      remove(`/messages/${message.id}`),
    ]);
    expect(responses.map(({ statusCode }) => statusCode).sort()).toEqual([204, 404]);
  });
});

test('deleting a thread deletes all its messages', async () => {
  const first = await sent();
  const second = await sent({ threadId: first.thread_id });
  expect((await remove(`/threads/${first.thread_id}`)).statusCode).toBe(204);
  for (const path of [`/threads/${first.thread_id}`, `/messages/${first.id}`, `/messages/${second.id}`])
    expectProblem(await call(path), 'not_found');
});

describe('deleting an inbox with purge', () => {
  const purges = () => purgeServiceOf(app.worker);

  test('deletes its messages, even if the inbox was already deleted, and keeps those of other inboxes', async () => {
    const inbox = (await createInbox(app.worker, organization)).id;
    const messages = [await sent({ inbox }), await sent({ inbox })];
    const other = await sent();
    await call(`/inboxes/${inbox}/drafts`, { method: 'POST', body: { subject: 'left' } });
    expect((await remove(`/inboxes/${inbox}`)).statusCode).toBe(204);
    expect((await get(`/inboxes/${inbox}/messages`)).data).toHaveLength(2);
    expect((await purges().purge(inbox, () => undefined)).messages).toBe(0);
    expect((await remove(`/inboxes/${inbox}?purge=true`)).statusCode).toBe(204);
    expect((await remove(`/inboxes/${inbox}?purge=true`)).statusCode).toBe(204);
    const starts = app.commands.filter((command) => JSON.stringify(command).includes(`purge/${inbox}`));
    expect(starts).toMatchObject([{ start: { workflowType: 'purgeInbox', input: { inboxId: inbox } } }]);
    expect(await purges().purge(inbox, () => undefined)).toEqual({ messages: 2, threads: 2 });
    for (const { id } of messages) expectProblem(await call(`/messages/${id}`), 'not_found');
    expectProblem(await call(`/inboxes/${inbox}/messages`), 'not_found');
    expect((await get(`/messages/${other.id}`)).id).toBe(other.id);
  });

  test.each<MessageStatus>(['sending', 'needs_attention'])(
    'waits for messages that are %s',
    async (status) => {
      const inbox = (await createInbox(app.worker, organization)).id;
      const message = await sent({ inbox, status });
      await sent({ inbox });
      await query(
        app.worker,
        sql`insert into send_attempts (message_id, position, number, org_id, state, recorded, started_at)
       values (${message.id}, 0, 1, ${organization.organizationId}, 'attempting', false, now())`,
      );
      await remove(`/inboxes/${inbox}?purge=true`);
      await expect(purges().purge(inbox, () => undefined)).rejects.toMatchObject({ code: 'unavailable' });
      await query(
        app.worker,
        sql`update inboxes set purge_requested_at = now() - interval '3 minutes' where id = ${inbox}`,
      );
      const runs = await overduePurges(app.worker).take(10_000);
      expect(runs.map(({ start }) => start.workflowId)).toContain(`purge/${inbox}`);
      await app.worker.db
        .updateTable('messages')
        .set({ status: 'sent' })
        .where('id', '=', message.id)
        .execute();
      expect((await purges().purge(inbox, () => undefined)).messages).toBe(1);
    },
  );
});
