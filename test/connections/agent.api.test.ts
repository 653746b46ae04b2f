import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { asToolCall, createConnection } from '../support/connections.ts';
import { connectTools } from '../support/mcp-client.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { setPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp();
let organization: TestOrganization;
let inboxId: string;
let connectionId: string;
let token: string;
beforeEach(async () => {
  organization = await createOrganization(app.worker);
  const { organizationId } = organization;
  inboxId = (await createInbox(app.worker, organization)).id;
  const userId = await createTestUser(app.worker, { organizationId, role: 'owner' });
  ({ connectionId, token } = await createConnection(app.worker, { organizationId, userId }));
});

const send = () =>
  asToolCall(() =>
    app.call(`/inboxes/${inboxId}/messages`, {
      method: 'POST',
      token,
      body: { to: ['ada@people.example'], subject: 'Offer', text_body: 'x' },
    }),
  );

describe('a connection counts as an agent, although a person granted it', () => {
  test('its send waits for a person under require_send_approval, and it cannot approve', async () => {
    await setPolicies(app.worker, organization.organizationId, { require_send_approval: 'all' });
    const waiting = await send();
    expect(waiting.statusCode).toBe(202);
    const { id, version, send_status } = waiting.json();
    expect(send_status).toBe('pending_approval');
    const approve = (credential: string) =>
      app.call(`/drafts/${id}/approve`, { method: 'POST', token: credential, body: { version } });
    expectProblem(await asToolCall(() => approve(token)), 'permission_denied');
    const person = await createTestSession(app.worker, organization.ownerId);
    expect((await approve(person.token)).statusCode).toBe(201);
  });

  test('the tool says that the send waits', async () => {
    await setPolicies(app.worker, organization.organizationId, { require_send_approval: 'all' });
    const tools = await connectTools(app, token);
    const { answer } = await tools.call('send_message', {
      inbox_id: inboxId,
      to: ['ada@people.example'],
      subject: 'Offer',
      text_body: 'x',
    });
    expect(JSON.stringify(answer)).toContain('pending_approval');
    await tools.close();
  });

  test('what it sends is marked as automatic', async () => {
    const { id } = (await send()).json();
    const [message] = await query<{ auto: string }>(
      app.worker,
      sql`select auto_submitted as auto from messages where id = ${id}`,
    );
    expect(message?.auto).toBe('auto-generated');
  });

  test('the daily cap of an inbox holds for it', async () => {
    await setPolicies(app.worker, organization.organizationId, { daily_send_cap_per_inbox: 1 });
    expect((await send()).statusCode).toBe(201);
    expect((await send()).statusCode).toBeGreaterThanOrEqual(400);
  });

  test('the audit log names the connection and its client', async () => {
    await asToolCall(() => app.call('/inboxes', { method: 'POST', token, body: {} }));
    const { data } = (
      await app.call(`/org/audit-log?actor_id=${connectionId}`, { token: organization.token })
    ).json();
    expect(data).toEqual([
      expect.objectContaining({
        action: 'inbox.created',
        actor: expect.objectContaining({ kind: 'connection', id: connectionId, name: 'Test host' }),
        credential_id: connectionId,
      }),
    ]);
  });

  test('it cannot make keys, webhooks, invitations or weaker policies, nor end other connections', async () => {
    const attempts: [string, 'POST' | 'PATCH' | 'DELETE' | 'GET', object?][] = [
      ['/api-keys', 'POST', { name: 'x', permissions: ['messages:read'] }],
      ['/webhooks/endpoints', 'POST', { url: 'https://attacker.example/hook', events: ['message.received'] }],
      ['/org/invitations', 'POST', { email: 'a@attacker.example', role: 'owner' }],
      ['/org/policies', 'PATCH', { require_send_approval: 'off' }],
      ['/connections', 'GET'],
    ];
    for (const [path, method, body] of attempts)
      expectProblem(await asToolCall(() => app.call(path, { method, token, body })), 'permission_denied');
    const own = await asToolCall(() => app.call(`/connections/${connectionId}`, { method: 'DELETE', token }));
    expectProblem(own, 'not_found');
  });

  test('it is no person: what belongs to people needs a session', async () => {
    for (const path of ['/user/me', '/user/me/sessions', '/auth/mfa/status'])
      expectProblem(await asToolCall(() => app.call(path, { token })), 'unauthenticated');
  });
});
