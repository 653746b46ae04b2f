import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { IngestServiceOptions } from '../../domain/inbound/ingest.service.ts';
import type { Message } from '../../domain/messages/message.entity.ts';
import { DEFAULT_LOOKBACK_MS } from '../../domain/messages/message-wait.service.ts';
import type { Answer } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { arrangeInbox, mail, type ReceiptFacts, sharedParserPool } from '../support/inbound-mail.ts';
import { listen } from '../support/live-stream.ts';
import { createKey, createOrganization } from '../support/organizations.ts';
import { arrangeSending, dispatchOnce } from '../support/outbound-mail.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';

const METRICS_TOKEN = 'metrics';

/** Resolves when this many requests are held open. */
const untilOpen = (count: number, { app: server }: TestApp = app) =>
  eventually(async () => {
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
    const { body } = await server.inject({ url: '/metrics', headers });
    expect(body).toContain(`http_open_answers ${count}\n`);
  });

const app = useTestApp({ config: { STREAM_HEARTBEAT_MS: '200', METRICS_TOKEN } });
let baseUrl: string;
beforeAll(async () => {
  baseUrl = await listen(app);
});
afterAll(async () => {
  await sharedParserPool().close();
});

async function arrange(overrides: Partial<IngestServiceOptions> = {}) {
  const { inbox, receive } = await arrangeInbox(app.worker, overrides);
  const { organizationId } = inbox;
  const { token, keyId } = await createKey(app.worker, { organizationId });
  const path = `/inboxes/${inbox.id}/messages/wait`;
  const call = (query: string, signal?: AbortSignal) =>
    fetch(`${baseUrl}${path}${query}`, {
      headers: { authorization: `Bearer ${token}` },
      ...(signal ? { signal } : {}),
    });
  /** Sends the request and resolves with its pending response once the request waits. */
  const wait = async (query = '?timeout_seconds=20', signal?: AbortSignal) => {
    const pendingResult = call(query, signal).then(async (response) => (await response.json()) as Answer);
    await untilOpen(1);
    return { pendingResult };
  };
  const receiveMessage = async (
    subject: string,
    facts?: ReceiptFacts,
  ): Promise<Pick<Message, 'id' | 'inboxId' | 'threadId' | 'createdAt'>> => {
    const { message } = await receive(mail({ Subject: subject }), facts);
    if (!message) throw new Error('The message was not received');
    return message;
  };
  return { inbox, token, keyId, path, call, wait, receive, receiveMessage };
}

describe('for=code', () => {
  test('returns when a message with a code arrives, and passes over others', async () => {
    const { wait, receive, receiveMessage } = await arrange();
    const { pendingResult } = await wait('?for=code&timeout_seconds=20');
    await receiveMessage('No code');
    const { message } = await receive(mail({ Subject: 'Sign in' }, 'Your verification code is 482913'));
    expect(await pendingResult).toMatchObject({ id: message?.id, codes: [{ value: '482913' }] });
  });

  test('returns the message of a moment ago, and meets the other criteria too', async () => {
    const { call, receive } = await arrange();
    const { message } = await receive(mail({ Subject: 'Sign in' }, 'Your verification code is 482913'));
    expect(await (await call('?for=code&subject=sign&view=agent')).json()).toMatchObject({
      id: message?.id,
      codes: [{ value: '482913' }],
    });
    expect(await (await call('?for=code&subject=other&timeout_seconds=1')).json()).toMatchObject({
      timed_out: true,
    });
  });

  test('does not return a message without a code', async () => {
    const { call, receiveMessage } = await arrange();
    await receiveMessage('No code');
    expect(await (await call('?for=code&timeout_seconds=1')).json()).toMatchObject({ timed_out: true });
  });

  test('refuses anything else to wait for', async () => {
    const { call } = await arrange();
    expect((await call('?for=love')).status).toBe(400);
  });
});

test('returns the next message exactly as GET by id does', async () => {
  const { wait, receiveMessage, token } = await arrange();
  const { pendingResult } = await wait();
  const message = await receiveMessage('Hello');
  const found = await pendingResult;
  expect(found).toMatchObject({
    id: message.id,
    subject: 'Hello',
    text_body: expect.stringContaining('Hello'),
  });
  expect(found).toEqual((await app.call(`/messages/${message.id}`, { token })).json());
});

test('filters by sender and part of the subject, case-insensitively', async () => {
  const { wait, receive } = await arrange();
  const { pendingResult } = await wait('?timeout_seconds=20&from=BOB@people.example&subject=YOUR%20code');
  await receive(mail({ Subject: 'Your code is 1' }));
  await receive(mail({ From: 'Bob <bob@people.example>', Subject: 'Lunch?' }));
  const { message } = await receive(
    mail({ From: 'Bob <bob@People.example>', Subject: 'Here: your code is 2' }),
  );
  expect((await pendingResult).id).toBe(message?.id);
});

test('filters by the domain of the sender, not by names that contain it', async () => {
  const { wait, receive } = await arrange();
  const { pendingResult } = await wait('?timeout_seconds=20&from=People.example');
  await receive(mail({ From: '"people.example" <bob@elsewhere.example>', Subject: 'Spoofed' }));
  await receive(mail({ From: 'bob@mail.people.example', Subject: 'A subdomain' }));
  const { message } = await receive(mail({ From: 'Bob <bob@people.example>', Subject: 'Genuine' }));
  expect((await pendingResult).id).toBe(message?.id);
});

test('returns a message of the last 30 seconds immediately, but no older one', async () => {
  const { call, receiveMessage } = await arrange();
  const old = await receiveMessage('Old');
  await app.worker.db
    .updateTable('events')
    .set({ created_at: new Date(Date.now() - DEFAULT_LOOKBACK_MS - 1000) })
    .where('inbox_id', '=', old.inboxId)
    .execute();
  const recent = await receiveMessage('Just before the call');
  const found = (await (await call('?timeout_seconds=20')).json()) as Answer;
  expect(found.id).toBe(recent.id);
});

describe('waiting for a message of a thread', () => {
  test('returns the next message of that thread only', async () => {
    const { receive, token } = await arrange();
    const { message: first } = await receive(
      mail({ Subject: 'First', 'Message-ID': '<first@people.example>' }),
    );
    const pendingResult = fetchJson(
      `/threads/${first?.threadId}/wait?timeout_seconds=20&since=${first?.id}`,
      token,
    );
    await untilOpen(1);
    await receive(mail({ Subject: 'Another thread' }));
    const { message: answer } = await receive(
      mail({ Subject: 'Re: First', 'In-Reply-To': '<first@people.example>' }),
    );
    expect(answer?.threadId).toBe(first?.threadId);
    expect((await pendingResult).id).toBe(answer?.id);
  });

  test('is not found for a thread outside the credential’s scope', async () => {
    const [own, other] = await Promise.all([arrange(), arrange()]);
    const message = await other.receiveMessage('Elsewhere');
    expectProblem(await app.call(`/threads/${message.threadId}/wait`, own), 'not_found');
  });
});

describe('waiting for the outcome of a message', () => {
  async function arrangeMessage(...to: string[]) {
    const sending = await arrangeSending(app.worker);
    const { token } = await createKey(app.worker, { organizationId: sending.inbox.organizationId });
    return { ...sending, token, id: await sending.send(...to) };
  }

  test('answers when every recipient is settled, with the message', async () => {
    const { id, token, ...sending } = await arrangeMessage('ada@people.example', 'bob@people.example');
    const pendingResult = fetchJson(`/messages/${id}/wait?timeout_seconds=60`, token);
    await untilOpen(1);
    expect(await dispatchOnce(sending, id)).toBe('settled');
    for (const position of [0, 1]) {
      const outcome = { position, kind: 'delivered', statusCode: '2.0.0', diagnosticCode: null } as const;
      await app.worker.systemTransaction((transaction) => sending.outcomes.apply(transaction, id, [outcome]));
    }
    const message = await pendingResult;
    expect(message).toMatchObject({ id, status: 'delivered' });
    expect(message).toEqual((await app.call(`/messages/${id}`, { token })).json());
  });

  test('answers immediately for a message that is canceled or was received', async () => {
    const { id, token, inbox } = await arrangeMessage('ada@people.example');
    expect((await app.call(`/messages/${id}/cancel`, { method: 'POST', token })).statusCode).toBe(200);
    expect(await fetchJson(`/messages/${id}/wait`, token)).toMatchObject({ id, status: 'canceled' });
    const { receive } = await arrangeInbox(app.worker, {}, inbox);
    const { message } = await receive(mail({ Subject: 'Hello' }));
    expect(await fetchJson(`/messages/${message?.id}/wait`, token)).toMatchObject({ id: message?.id });
  });

  test('keeps waiting for a delivery report that is expected, but not for one that is not', async () => {
    const { id, token, ...sending } = await arrangeMessage('ada@people.example');
    await dispatchOnce(sending, id);
    expect(await fetchJson(`/messages/${id}/wait?timeout_seconds=1`, token)).toEqual({
      object: 'timeout',
      timed_out: true,
    });
    await app.worker.db.updateTable('messages').set({ tracked: false }).where('id', '=', id).execute();
    expect(await fetchJson(`/messages/${id}/wait`, token)).toMatchObject({ id, status: 'sent' });
  });

  test('is not found for a message of another organization', async () => {
    const [{ id }, { token }] = await Promise.all([arrangeMessage('ada@people.example'), arrange()]);
    expectProblem(await app.call(`/messages/${id}/wait`, { token }), 'not_found');
  });
});

async function fetchJson(path: string, token: string): Promise<Answer> {
  const response = await fetch(`${baseUrl}${path}`, { headers: { authorization: `Bearer ${token}` } });
  return (await response.json()) as Answer;
}

test('matches accented letters whether composed or decomposed', async () => {
  const { wait, receive } = await arrange();
  const { pendingResult } = await wait(
    `?timeout_seconds=20&subject=${encodeURIComponent('für'.normalize('NFD'))}`,
  );
  const { message } = await receive(mail({ Subject: '=?utf-8?q?Code_f=C3=BCr_Ada?=' }));
  expect((await pendingResult).id).toBe(message?.id);
});

test('with a message id in since, returns messages that arrived between two calls immediately, in order and once', async () => {
  const { call, receiveMessage, wait } = await arrange();
  const seen = await receiveMessage('Seen');
  const [second, third] = [await receiveMessage('Second'), await receiveMessage('Third')];
  // Accepted before the others but stored after them: it would be missed if ordered by id.
  const late = await receiveMessage('Late', { receivedAt: new Date(Date.now() - 60_000) });
  const ids = [];
  for (let since = seen.id; ids.length < 3; ) {
    const found = (await (await call(`?timeout_seconds=20&since=${since}`)).json()) as Answer;
    ids.push(found.id);
    since = found.id;
  }
  expect(ids).toEqual([second.id, third.id, late.id]);
  const { pendingResult } = await wait(`?timeout_seconds=20&since=${late.id}`);
  const next = await receiveMessage('Next');
  expect((await pendingResult).id).toBe(next.id);
});

test('with a time in since, returns messages received after it', async () => {
  const { call, receiveMessage } = await arrange();
  await receiveMessage('Long ago');
  const time = await eventually(() => {
    const now = new Date();
    expect(now.getTime()).toBeGreaterThan(started + 1);
    return now.toISOString();
  });
  const message = await receiveMessage('Then');
  const found = (await (await call(`?timeout_seconds=20&since=${time}`)).json()) as Answer;
  expect(found.id).toBe(message.id);
});
const started = Date.now();

test('ignores spam until its label is removed', async () => {
  const { wait, receive, token } = await arrange({
    scanForSpam: async () => ({ verdict: 'spam' as const, score: 20 }),
  });
  const { pendingResult } = await wait();
  const { message } = await receive(mail({ Subject: 'You have won' }));
  expect(message?.labels).toContain('spam');
  const freed = await receive(mail({ Subject: 'No spam' }));
  const removed = await app.call(`/messages/${freed.message?.id}/labels/spam`, { method: 'DELETE', token });
  expect(removed.statusCode).toBeLessThan(300);
  expect((await pendingResult).id).toBe(freed.message?.id);
});

test('returns timed_out when no message arrives in time', async () => {
  const { call } = await arrange();
  const startedAt = performance.now();
  const response = await call('?timeout_seconds=1&from=nobody@example.test');
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({ object: 'timeout', timed_out: true });
  expect(performance.now() - startedAt).toBeGreaterThan(950);
});

test('releases the wait when the client disconnects', async () => {
  const { wait } = await arrange();
  const controller = new AbortController();
  const { pendingResult } = await wait('?timeout_seconds=300', controller.signal);
  controller.abort();
  await expect(pendingResult).rejects.toThrow();
  await untilOpen(0);
});

test('ends the wait when the key is revoked', async () => {
  const { wait, keyId, inbox } = await arrange();
  const { pendingResult } = await wait('?timeout_seconds=300');
  const owner = await createKey(app.worker, { organizationId: inbox.organizationId });
  await app.call(`/api-keys/${keyId}`, { method: 'DELETE', token: owner.token });
  expect(await pendingResult).toMatchObject({ code: 'unauthenticated' });
});

test('returns immediately when the process shuts down', async () => {
  const stoppingApp = await startTestApp({ config: { METRICS_TOKEN } });
  const url = await listen(stoppingApp);
  const { inbox, token } = await arrange();
  const path = `/inboxes/${inbox.id}/messages/wait?timeout_seconds=300`;
  const pendingResponse = fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  await untilOpen(1, stoppingApp);
  await stoppingApp.close();
  expect(await (await pendingResponse).json()).toEqual({ object: 'timeout', timed_out: true });
});

test.each([
  ['?timeout_seconds=0', 'validation_error'],
  ['?timeout_seconds=301', 'validation_error'],
  ['?since=yesterday', 'validation_error'],
  ['?since=msg_bad', 'validation_error'],
  [`?since=${encodeURIComponent('Mon Nov 23 2026 22:08:00 GMT+0000')}`, 'validation_error'],
  ['?since=2026', 'validation_error'],
  ['?since=msg_01jz0000000000000000000000', 'not_found'],
  ['?form=ada@people.example', 'validation_error'],
] as const)('rejects %s', async (query, code) => {
  const { path, token } = await arrange();
  expectProblem(await app.call(`${path}${query}`, { token }), code);
});

test('a since that is neither an id nor a time is told both forms', async () => {
  const { path, token } = await arrange();
  const { errors } = (await app.call(`${path}?since=msg_bad`, { token })).json<{
    errors: { path: string; message: string }[];
  }>();
  expect(errors).toMatchObject([{ message: 'must be the id of a message (msg_…), or a valid time' }]);
});

test('returns 404 for inaccessible inboxes and messages', async () => {
  const [own, other] = await Promise.all([arrange(), arrange()]);
  const otherOrganization = await createOrganization(app.worker);
  expectProblem(await app.call(own.path, otherOrganization), 'not_found');
  const message = await other.receiveMessage('Elsewhere');
  expectProblem(await app.call(`${own.path}?since=${message.id}`, own), 'not_found');
});
