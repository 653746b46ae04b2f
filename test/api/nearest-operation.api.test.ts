import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '../../platform/ids.ts';
import { existsOperation, listNamedOperations } from '../support/named-operations.ts';
import { createKey, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';
import { createStaff } from '../support/staff.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
let organization: TestOrganization;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
});

let addresses = 0;
/** Each request comes from another address, because unknown paths are limited by address. */
async function ask(method: string, path: string, call: Call = { token: organization.token }) {
  addresses += 1;
  const headers = { 'x-forwarded-for': `198.51.${addresses >> 8}.${addresses & 255}`, ...call.headers };
  const response = await app.call(path, {
    prefix: '',
    ...call,
    method: method as NonNullable<Call['method']>,
    headers,
  });
  const problem = expectProblem(response, response.statusCode === 405 ? 'method_not_allowed' : 'not_found');
  return { nearest: (problem.nearest_operation ?? '') as string, fix: problem.fix as string };
}

const ids = {
  inbox: newId('inbox'),
  message: newId('message'),
  draft: newId('draft'),
  thread: newId('thread'),
  endpoint: newId('webhookEndpoint'),
  key: newId('apiKey'),
};

describe('an unknown path or method names the nearest operation', () => {
  test.each([
    ['POST', `/api/v1/drafts/${ids.draft}/schedule`, 'PATCH /api/v1/drafts/{id}', 'with send_at'],
    ['POST', '/api/v1/send', 'POST /api/v1/inboxes/{inboxId}/messages', ''],
    ['POST', '/api/v1/emails', 'POST /api/v1/inboxes/{inboxId}/messages', ''],
    ['POST', '/api/v1/messages', 'POST /api/v1/inboxes/{inboxId}/messages', ''],
    ['POST', `/api/v1/inboxes/${ids.inbox}/send`, 'POST /api/v1/inboxes/{inboxId}/messages', ''],
    ['POST', `/v0/inboxes/${ids.inbox}/messages/send`, 'POST /api/v1/inboxes/{inboxId}/messages', ''],
    ['GET', '/api/v1/emails', 'GET /api/v1/messages', ''],
    ['GET', '/api/v1/search?q=secret', 'GET /api/v1/messages', 'with q'],
    ['POST', `/api/v1/messages/${ids.message}/read`, 'POST /api/v1/messages/{id}/labels', ''],
    ['PATCH', `/api/v1/messages/${ids.message}`, 'POST /api/v1/messages/{id}/labels', ''],
    [
      'POST',
      `/api/v1/messages/${ids.message}/reply-all`,
      'POST /api/v1/messages/{id}/reply',
      'with reply_all',
    ],
    ['GET', `/api/v1/messages/${ids.message}/status`, 'GET /api/v1/messages/{id}', ''],
    ['POST', `/api/v1/messages/${ids.message}/delete`, 'DELETE /api/v1/messages/{id}', ''],
    ['GET', `/api/v1/inboxes/${ids.inbox}/messages/${ids.message}`, 'GET /api/v1/messages/{id}', ''],
    ['POST', '/api/v1/webhook', 'POST /api/v1/webhooks/endpoints', ''],
    ['DELETE', `/api/v1/webhooks/${ids.endpoint}`, 'DELETE /api/v1/webhooks/endpoints/{id}', ''],
    ['PUT', `/api/v1/webhooks/endpoints/${ids.endpoint}`, 'PATCH /api/v1/webhooks/endpoints/{id}', ''],
    ['PUT', `/api/v1/inboxes/${ids.inbox}`, 'PATCH /api/v1/inboxes/{id}', ''],
    ['POST', `/api/v1/inboxes/${ids.inbox}`, 'PATCH /api/v1/inboxes/{id}', ''],
    ['PATCH', '/api/v1/org/limits', 'PUT /api/v1/org/limits', ''],
    ['GET', '/api/v1/apikeys', 'GET /api/v1/api-keys', ''],
    ['POST', `/api/v1/apikeys/${ids.key}/rotate`, 'POST /api/v1/api-keys/{id}/rotate', ''],
    ['GET', '/api/v1/whoami', 'GET /api/v1/me', ''],
    ['POST', '/api/v1/drafts', 'POST /api/v1/inboxes/{inboxId}/drafts', ''],
    ['GET', '/api/v1/inbox', 'GET /api/v1/messages', ''],
    ['GET', '/api/v1/inboxs', 'GET /api/v1/inboxes', ''],
    ['POST', '/api/v1/inboxes/create', 'POST /api/v1/inboxes', ''],
    ['GET', `/api/v1/mailboxes/${ids.inbox}`, 'GET /api/v1/inboxes/{id}', ''],
    ['GET', `/api/v1/conversations/${ids.thread}`, 'GET /api/v1/threads/{id}', ''],
    ['POST', '/api/v1/emails/batch', 'POST /api/v1/inboxes/{inboxId}/messages/batch', ''],
    ['GET', `/api/v1/drafts/${ids.draft}/approval`, 'GET /api/v1/drafts/{id}/wait', ''],
    ['GET', '/api/v1/logs', 'GET /api/v1/requests', ''],
    ['POST', '/api/v1/labels', 'POST /api/v1/messages/labels', ''],
    ['GET', '/threads', 'GET /api/v1/threads', ''],
    ['GET', '/v1/inboxes', 'GET /api/v1/inboxes', ''],
    ['POST', `/drafts/${ids.draft}/send`, 'POST /api/v1/drafts/{id}/send', ''],
    ['GET', `/API/V1/Messages/${ids.message}`, 'GET /api/v1/messages/{id}', ''],
    ['GET', `/api/v1/threads/${ids.thread}/messages`, 'GET /api/v1/threads/{id}', ''],
  ])('%s %s: %s', async (method, path, operation, how) => {
    const { nearest, fix } = await ask(method, path);
    expect(nearest).toBe(operation);
    expect(fix).toContain(`Did you mean ${operation}${how === '' ? '' : ` ${how}`}`);
    for (const named of listNamedOperations(fix))
      expect(existsOperation(named, app.contract.operations)).toBe(true);
  });

  test.each([
    ['GET', '/api/v1/nowhere'],
    ['GET', '/api/v1/templates'],
    ['POST', `/${'a/'.repeat(500)}`],
    ['GET', `/api/v1/inboxes/${'%41'.repeat(90)}/x/y/z`],
    ['GET', '/api/v1/%00/__proto__/constructor'],
    ['GET', '/api/v1'],
  ])('nothing is near %s %s', async (method, path) => {
    const { nearest, fix } = await ask(method, path);
    expect({ nearest, fix }).toEqual({ nearest: '', fix: expect.stringContaining('/openapi.json') });
  });

  test('only of those that the credential may call', async () => {
    const { organizationId } = organization;
    const reader = await createKey(app.worker, { organizationId, permissions: ['messages:read'] });
    const by = { token: reader.token };
    expect((await ask('POST', '/api/v1/apikeys', by)).nearest).not.toMatch(/api-keys/);
    expect((await ask('POST', `/api/v1/drafts/${ids.draft}/schedule`, by)).nearest).not.toMatch(/drafts/);
    expect((await ask('GET', '/api/v1/emails', by)).nearest).toBe('GET /api/v1/messages');
    // What only people may do.
    expect((await ask('POST', `/api/v1/drafts/${ids.draft}/aprove`)).nearest).not.toMatch(/approve$/);
    expect((await ask('GET', '/api/v1/user/me/session')).nearest).not.toMatch(/user\/me/);
    const session = { token: (await createTestSession(app.worker, organization.ownerId)).token };
    expect((await ask('POST', `/api/v1/drafts/${ids.draft}/aprove`, session)).nearest).toBe(
      'POST /api/v1/drafts/{id}/approve',
    );
    expect((await ask('GET', '/api/v1/user/me/session', session)).nearest).toBe(
      'GET /api/v1/user/me/sessions',
    );
  });

  test('never an operation of staff or of mail servers, even to staff', async () => {
    const staff = await createStaff(app, { role: 'admin' });
    for (const call of [{}, { token: organization.token }, { token: staff.token }])
      for (const [method, path] of [
        ['GET', '/api/v1/admin/organization'],
        ['POST', '/api/v1/admin/orgs'],
        ['GET', '/api/v1/admin/staf'],
        ['DELETE', '/api/v1/admin/toggles'],
        ['POST', '/api/v1/provider/raw'],
        ['GET', '/admin/usages'],
      ] as const) {
        const { nearest, fix } = await ask(method, path, call);
        expect(`${nearest} ${fix}`).not.toMatch(/\/(?:admin|providers)/);
      }
  });

  test('without or with a wrong credential as the public document does', async () => {
    for (const call of [
      {},
      { token: 'ask_live_wrong' },
      { token: 'sst_wrong' },
      { token: organization.token },
    ])
      expect((await ask('POST', '/api/v1/send', call)).nearest).toBe(
        'POST /api/v1/inboxes/{inboxId}/messages',
      );
    // Billing is off here.
    for (const call of [{}, { token: organization.token }])
      expect((await ask('GET', '/api/v1/billing/subscriptions', call)).nearest).not.toMatch(/billing/);
  });

  test('only reads while suspended', async () => {
    const { organizationId, token } = await createOrganization(app.worker);
    await app.worker.db
      .updateTable('organizations')
      .set({ status: 'suspended' })
      .where('id', '=', organizationId)
      .execute();
    expect((await ask('POST', '/api/v1/send', { token })).nearest).not.toMatch(/^POST/);
    expect((await ask('GET', '/api/v1/emails', { token })).nearest).toBe('GET /api/v1/messages');
  });
});
