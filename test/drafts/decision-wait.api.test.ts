import { beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { listen } from '../support/live-stream.ts';
import { createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { setPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const METRICS_TOKEN = 'metrics';
const app = useTestApp({ config: { STREAM_HEARTBEAT_MS: '200', METRICS_TOKEN } });
let baseUrl: string;
beforeAll(async () => {
  baseUrl = await listen(app);
});

const IN_A_WEEK = new Date(Date.now() + 7 * 86_400_000).toISOString();

/** An inbox whose sends wait for approval, and an approver. */
async function arrange() {
  const organization = await createOrganization(app.worker);
  const { organizationId, token } = organization;
  const inbox = await createInbox(app.worker, organization);
  await setPolicies(app.worker, organizationId, { require_send_approval: 'all' });
  const userId = await createTestUser(app.worker, { organizationId, role: 'admin' });
  const approver = (await createTestSession(app.worker, userId)).token;
  const post = (path: string, body: unknown, by = token) =>
    app.call(path, { method: 'POST', token: by, body });
  const pend = async (body: object = {}) => {
    const content = { to: ['ada@people.example'], subject: 'Offer', text_body: 'x', ...body };
    const response = await post(`/inboxes/${inbox.id}/messages`, content);
    expect(response.statusCode).toBe(202);
    return response.json<{ id: string; version: number }>();
  };
  const call = (draftId: string, seconds = 20) =>
    fetch(`${baseUrl}/drafts/${draftId}/wait?timeout_seconds=${seconds}`, {
      headers: { authorization: `Bearer ${token}` },
    }).then(async (response) => ({ status: response.status, ...((await response.json()) as object) }));
  return {
    organization,
    inbox,
    approver,
    post,
    pend,
    call,
    /** Starts to wait. Resolves with the pending answer once the call is held open. */
    wait: async (draftId: string) => {
      const answer = call(draftId);
      await eventually(async () => {
        const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
        expect((await app.app.inject({ url: '/metrics', headers })).body).toContain('http_open_answers 1\n');
      });
      return { answer };
    },
    decide: (draft: { id: string; version: number }, decision: 'approve' | 'reject', note?: string) =>
      post(
        `/drafts/${draft.id}/${decision}`,
        { version: draft.version, ...(note ? { note } : {}) },
        approver,
      ),
  };
}

describe('waiting for the decision about a draft', () => {
  test('answers with the message once a person has approved', async () => {
    const { pend, wait, decide, call } = await arrange();
    const draft = await pend();
    const { answer } = await wait(draft.id);
    const message = (await decide(draft, 'approve')).json<{ id: string }>();
    const expected = {
      status: 200,
      object: 'draft_outcome',
      draft_id: draft.id,
      outcome: 'sent',
      message_id: message.id,
      send_at: null,
      send_error: null,
      note: null,
    };
    expect(await answer).toEqual(expected);
    expect(await call(draft.id)).toEqual(expected);
  });

  test('is woken by the event, before it would read again by itself', async () => {
    const { pend, wait, decide } = await arrange();
    // A busy machine may delay one of them.
    const times: number[] = [];
    while (times.length < 3 && Math.min(...times) >= 4_000) {
      const draft = await pend();
      const { answer } = await wait(draft.id);
      const decidedAt = performance.now();
      await decide(draft, 'approve');
      await answer;
      times.push(performance.now() - decidedAt);
    }
    expect(Math.min(...times)).toBeLessThan(4_000);
  });

  test('answers with the note once a person has rejected', async () => {
    const { pend, wait, decide } = await arrange();
    const draft = await pend();
    const { answer } = await wait(draft.id);
    await decide(draft, 'reject', 'Wrong price');
    expect(await answer).toMatchObject({
      outcome: 'rejected',
      message_id: null,
      send_error: expect.stringMatching(/^approval_rejected/),
      note: 'Wrong price',
    });
  });

  test.each([
    { what: 'sent at once', body: { send_at: undefined } },
    { what: 'scheduled, and then sent', body: { send_at: IN_A_WEEK } },
  ])('tells the note of the approver about a draft that was $what', async ({ body }) => {
    const { pend, wait, decide, call, post, approver } = await arrange();
    const draft = await pend(body);
    const { answer } = await wait(draft.id);
    await decide(draft, 'approve', 'Good price');
    expect(await answer).toMatchObject({ note: 'Good price' });
    if (body.send_at) {
      const sent = await post(`/drafts/${draft.id}/send`, { version: draft.version }, approver);
      expect(sent.statusCode).toBe(201);
    }
    expect(await call(draft.id)).toMatchObject({ outcome: 'sent', note: 'Good price' });
  });

  test('answers at once for a scheduled draft that was approved, and not for one that waits', async () => {
    const { pend, wait, decide, call } = await arrange();
    const draft = await pend({ send_at: IN_A_WEEK });
    expect(await call(draft.id, 1)).toEqual({ status: 200, object: 'timeout', timed_out: true });
    const { answer } = await wait(draft.id);
    await decide(draft, 'approve');
    expect(await answer).toMatchObject({ outcome: 'approved', message_id: null, send_at: IN_A_WEEK });
    expect(await call(draft.id)).toMatchObject({ outcome: 'approved' });
  });

  test('answers when the draft is deleted meanwhile', async () => {
    const { organization, pend, wait } = await arrange();
    const draft = await pend();
    const { answer } = await wait(draft.id);
    await app.call(`/drafts/${draft.id}`, { method: 'DELETE', token: organization.token });
    expect(await answer).toMatchObject({ outcome: 'deleted', message_id: null });
    expectProblem(await app.call(`/drafts/${draft.id}/wait`, { token: organization.token }), 'not_found');
  });

  test('ends when the key is revoked meanwhile', async () => {
    const { organization, pend, wait } = await arrange();
    const draft = await pend();
    const { answer } = await wait(draft.id);
    await app.worker.db
      .updateTable('api_keys')
      .set({ revoked_at: new Date() })
      .where('id', '=', organization.keyId)
      .execute();
    expect(await answer).toMatchObject({ status: 401, code: 'unauthenticated' });
  });

  test('needs drafts:read, and finds no draft of another organization or inbox', async () => {
    const { organization, pend } = await arrange();
    const draft = await pend();
    const { organizationId, productionEnvironmentId } = organization;
    const ask = (token: string) => app.call(`/drafts/${draft.id}/wait?timeout_seconds=1`, { token });
    const sender = await createKey(app.worker, { organizationId, permissions: ['messages:send'] });
    expectProblem(await ask(sender.token), 'permission_denied');
    const otherInbox = await createInbox(app.worker, organization);
    const ofInbox = await createKey(app.worker, {
      organizationId,
      environmentId: productionEnvironmentId,
      inboxId: otherInbox.id,
    });
    expectProblem(await ask(ofInbox.token), 'not_found');
    expectProblem(await ask((await createOrganization(app.worker)).token), 'not_found');
  });
});
