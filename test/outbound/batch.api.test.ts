import { describe, expect, test } from '@jest/globals';
import { createSendBatch } from '../../domain/outbound/send-batch.ts';
import { AppError } from '../../platform/errors.ts';
import { administerLimits, setLimit } from '../support/limits.ts';
import { createAttachment, createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { setPolicies, type TestPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { testScope } from '../support/test-scope.ts';

const app = useTestApp();

interface Result {
  message_id: string | null;
  thread_id: string | null;
  draft_id: string | null;
  error: { status: number; code: string; [member: string]: unknown } | null;
}

async function arrange(policies: TestPolicies = {}) {
  const organization = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, organization);
  const { token, organizationId } = organization;
  await setPolicies(app.worker, organizationId, policies);
  const post = (messages: unknown[], headers: Record<string, string> = {}, by = token) =>
    app.call(`/inboxes/${inbox.id}/messages/batch`, {
      method: 'POST',
      token: by,
      headers,
      body: { messages },
    });
  const count = async (table: 'messages' | 'drafts', where: 'org_id' = 'org_id') =>
    (await app.worker.db.selectFrom(table).select('id').where(where, '=', organizationId).execute()).length;
  return {
    organization,
    inbox,
    post,
    send: async (messages: unknown[], headers: Record<string, string> = {}) => {
      const response = await post(messages, headers);
      expect(response.statusCode).toBe(200);
      return response.json<{ data: Result[] }>().data;
    },
    count,
    sent: async () =>
      (await app.call('/org/usage', { token })).json().counters.messages_sent.current as number,
    rejected: () =>
      app.worker.db
        .selectFrom('events')
        .select('data')
        .where('org_id', '=', organizationId)
        .where('type', '=', 'message.rejected')
        .orderBy('id')
        .execute(),
    /** How many runs were started for messages of the organization. */
    starts: async () => {
      const ids = (
        await app.worker.db.selectFrom('messages').select('id').where('org_id', '=', organizationId).execute()
      ).map(({ id }) => id);
      return app.commands.filter((command) => ids.some((id) => JSON.stringify(command).includes(id))).length;
    },
  };
}

const mail = (to: string, fields: object = {}) => ({ to: [to], subject: 'Hello', text_body: 'x', ...fields });
const accepted = { message_id: expect.stringMatching(/^msg_/), thread_id: expect.stringMatching(/^thr_/) };

describe('a batch', () => {
  test('accepts or refuses each message by itself, and counts as single sends do', async () => {
    const { organization, send, count, sent, rejected, starts } = await arrange();
    const { token } = organization;
    await app.call('/lists/send/block', { method: 'POST', token, body: { entry: 'rival.example' } });
    const results = await send([
      mail('ada@people.example'),
      mail('eve@rival.example'),
      { subject: 'Nobody', text_body: 'x' },
      mail('not an address'),
      mail('bob@people.example', { headers: { Subject: 'x' } }),
      mail('bob@people.example', { attachments: [{ attachment_id: 'att_none' }] }),
      mail('bob@people.example', { attachments: [{ filename: 'a.txt', content: '%%%' }] }),
      mail('eve@people.example', { labels: ['spam'] }),
      mail('bob@people.example'),
    ]);
    expect(results).toHaveLength(9);
    for (const index of [0, 8]) expect(results[index]).toEqual({ ...accepted, draft_id: null, error: null });
    expect(
      results.slice(1, 8).map(({ error, message_id }) => [error?.status, error?.code, message_id]),
    ).toEqual([
      [422, 'message_rejected', null],
      [422, 'no_recipients', null],
      [400, 'validation_error', null],
      [400, 'validation_error', null],
      [404, 'not_found', null],
      [400, 'validation_error', null],
      [422, 'unprocessable', null],
    ]);
    expect(results[1]?.error).toMatchObject({
      rejection_reason: 'blocked_recipient',
      fix: expect.stringContaining('DELETE /api/v1/lists/send/block/{entry}'),
    });
    expect(await count('messages')).toBe(2);
    expect(await sent()).toBe(2);
    expect(await starts()).toBe(2);
    expect(await rejected()).toHaveLength(1);
  });

  test('of 100 messages is accepted, and one of 101 is not', async () => {
    const { send, post, count } = await arrange();
    const messages = Array.from({ length: 100 }, (_, index) => mail(`a${index}@people.example`));
    const results = await send(messages);
    expect(results.every(({ message_id }) => message_id !== null)).toBe(true);
    expect(new Set(results.map(({ message_id }) => message_id)).size).toBe(100);
    expectProblem(await post([...messages, mail('one@people.example')]), 'validation_error');
    expectProblem(await post([]), 'validation_error');
    expect(await count('messages')).toBe(100);
  });

  test('whose body violates the schema sends nothing', async () => {
    const { post, count } = await arrange();
    const problem = expectProblem(
      await post([mail('ada@people.example'), { to: ['b@people.example'], text: 'x' }]),
      'validation_error',
    );
    expect(problem.errors).toEqual([expect.objectContaining({ path: 'messages[1].text' })]);
    expect(await count('messages')).toBe(0);
  });

  test('makes drafts of what waits for its time or for approval', async () => {
    const { send, count, starts } = await arrange({ require_send_approval: 'all' });
    const sendAt = new Date(Date.now() + 86_400_000).toISOString();
    const results = await send([mail('ada@people.example'), mail('bob@people.example', { send_at: sendAt })]);
    for (const result of results)
      expect(result).toEqual({
        message_id: null,
        thread_id: null,
        draft_id: expect.stringMatching(/^drf_/),
        error: null,
      });
    expect(await count('drafts')).toBe(2);
    expect(await count('messages')).toBe(0);
    expect(await starts()).toBe(0);
  });

  test('stops at a hard limit and at a daily cap exactly where single sends would, and says so', async () => {
    const limited = await arrange();
    const limits = administerLimits({ database: app.worker });
    await setLimit(limits, limited.organization.organizationId, { resource: 'messages_sent', limit: 2 });
    const four = ['a', 'b', 'c', 'd'].map((name) => mail(`${name}@people.example`));
    const results = await limited.send(four);
    expect(results.map(({ error }) => error?.code ?? 'accepted')).toEqual([
      ...['accepted', 'accepted'],
      ...['usage_limit_exceeded', 'usage_limit_exceeded'],
    ]);
    expect(results[2]?.error).toMatchObject({
      status: 429,
      counter: 'messages_sent',
      rejection_reason: 'rate_limited',
      resets_at: expect.any(String),
    });
    expect(await limited.count('messages')).toBe(2);
    expect(await limited.sent()).toBe(2);
    expect(await limited.starts()).toBe(2);
    expect(await limited.rejected()).toHaveLength(2);

    const capped = await arrange({ daily_send_cap_per_inbox: 3 });
    const outcomes = (await Promise.all([capped.send(four), capped.send(four)])).flat();
    expect(outcomes.filter(({ message_id }) => message_id !== null)).toHaveLength(3);
    expect(outcomes.filter(({ error }) => error?.policy === 'daily_send_cap_per_inbox')).toHaveLength(5);
    expect(await capped.count('messages')).toBe(3);
  });

  test('repeated with its Idempotency-Key answers the same, and sends nothing twice', async () => {
    const { post, count, sent, starts } = await arrange();
    const messages = [mail('ada@people.example'), { text_body: 'x' }, mail('bob@people.example')];
    const key = { 'idempotency-key': 'batch-1' };
    const first = await post(messages, key);
    expect(first.statusCode).toBe(200);
    const again = await post(messages, key);
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(again.body).toBe(first.body);
    expectProblem(await post(messages.slice(1), key), 'idempotency_key_reused');
    const both = await Promise.all([
      post(messages, { 'idempotency-key': 'batch-2' }),
      post(messages, { 'idempotency-key': 'batch-2' }),
    ]);
    for (const { statusCode } of both) expect([200, 409]).toContain(statusCode);
    expect(await count('messages')).toBe(4);
    expect(await sent()).toBe(4);
    expect(await starts()).toBe(4);
  });

  test('that fails in the middle stores nothing, and can be repeated', async () => {
    const { organization, inbox, count, rejected } = await arrange();
    const scope = testScope(organization, inbox);
    const { sendEach } = createSendBatch({ database: app.worker });
    const started: string[] = [];
    const run = (isBroken: boolean) =>
      sendEach(scope, { inboxId: inbox.id, items: ['a', 'b', 'c'] }, async (as, name) => {
        if (name === 'c' && isBroken) throw new Error('The connection is lost');
        if (name === 'b')
          throw new AppError('message_rejected', { detail: 'No.', fix: 'No.', commitsTransaction: true });
        return app.worker.transaction(as, async (transaction) => {
          transaction.afterCommit(() => started.push(name));
          await transaction.db
            .insertInto('drafts')
            .values({
              id: `drf_${inbox.id.slice(4)}${name}`,
              org_id: inbox.organizationId,
              env_id: inbox.environmentId,
              inbox_id: inbox.id,
              to: '[]' as never,
              cc: '[]' as never,
              bcc: '[]' as never,
              reply_to: '[]' as never,
              headers: '{}' as never,
            } as never)
            .execute();
        });
      });
    await expect(run(true)).rejects.toThrow('The connection is lost');
    expect(await count('drafts')).toBe(0);
    expect(started).toEqual([]);
    const results = await run(false);
    expect(results.map(({ refusal }) => refusal?.code)).toEqual([undefined, 'message_rejected', undefined]);
    expect(await count('drafts')).toBe(2);
    expect(started).toEqual(['a', 'c']);
    expect(await rejected()).toEqual([]);
  });

  test('needs messages:send, an inbox of the caller, and one that is not suspended', async () => {
    const { organization, inbox, post, count } = await arrange();
    const { organizationId } = organization;
    const reader = await createKey(app.worker, { organizationId, permissions: ['messages:read'] });
    expectProblem(await post([mail('ada@people.example')], {}, reader.token), 'permission_denied');
    const stranger = await createOrganization(app.worker);
    expectProblem(await post([mail('ada@people.example')], {}, stranger.token), 'not_found');
    const sender = await createKey(app.worker, { organizationId, permissions: ['messages:send'] });
    const sent = await post([mail('ada@people.example')], {}, sender.token);
    expect(sent.json().data[0]).toEqual({ ...accepted, draft_id: null, error: null });
    await app.worker.db
      .updateTable('inboxes')
      .set({ status: 'suspended' })
      .where('id', '=', inbox.id)
      .execute();
    const refused = (await post([mail('ada@people.example')])).json<{ data: Result[] }>().data;
    expect(refused[0]?.error).toMatchObject({ status: 403, code: 'inbox_suspended' });
    await app.worker.db
      .updateTable('organizations')
      .set({ status: 'suspended' })
      .where('id', '=', organizationId)
      .execute();
    expect(expectProblem(await post([mail('ada@people.example')]), 'organization_suspended')).toMatchObject({
      rejection_reason: 'account_paused',
    });
    expect(await count('messages')).toBe(1);
  });

  test('attaches an upload to several messages', async () => {
    const { inbox, send } = await arrange();
    const { id } = await createAttachment(app.worker, inbox.id);
    const attachments = [{ attachment_id: id }];
    const results = await send([
      mail('ada@people.example', { attachments }),
      mail('bob@people.example', { attachments }),
    ]);
    const rows = await app.worker.db
      .selectFrom('attachments')
      .select(['message_id as messageId', 'storage_key as key'])
      .where('inbox_id', '=', inbox.id)
      .execute();
    expect(rows.map(({ messageId }) => messageId).sort()).toEqual(
      results.map(({ message_id }) => message_id).sort(),
    );
    expect(new Set(rows.map(({ key }) => key)).size).toBe(1);
  });
});
