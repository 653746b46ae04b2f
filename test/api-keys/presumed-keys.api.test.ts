import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import type { Permission } from '../../domain/identity/permissions.ts';
import { newId } from '../../platform/ids.ts';
import { eventually } from '../support/eventually.ts';
import { createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { recordStatements } from '../support/recorded-statements.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();

/** A key that has just read, so that its next read presumes what it may do. */
async function arrange({ permissions = ['inboxes:read'] as Permission[] } = {}) {
  const organization = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, organization);
  const key = await createKey(app.worker, { ...organization, permissions });
  const read = (path = `/inboxes/${inbox.id}`, options = {}) =>
    app.call(path, { token: key.token, ...options });
  expect((await read()).statusCode).toBe(200);
  const change = (values: object) =>
    app.worker.db.updateTable('api_keys').set(values).where('id', '=', key.keyId).execute();
  return { organization, inbox, key, read, change };
}

test('a key that was used before is confirmed in the transaction that reads', async () => {
  const { read } = await arrange();
  const statements = recordStatements();
  try {
    expect((await read()).statusCode).toBe(200);
    const texts = statements.texts().filter((text) => /^begin|find_api_key|"inboxes"/.test(text));
    expect(texts).toEqual([
      expect.stringMatching(/^begin .*read only/),
      expect.stringContaining('find_api_key'),
      expect.stringContaining('"inboxes"'),
    ]);
  } finally {
    statements.stop();
  }
});

describe('a key that is no longer valid learns nothing:', () => {
  const CHANGES = [
    { how: 'revoked', values: () => ({ revoked_at: new Date() }) },
    { how: 'expired', values: () => ({ expires_at: new Date(Date.now() - 1_000) }) },
    { how: 'replaced', values: () => ({ token_hash: randomBytes(32) }) },
  ];
  const READS = [
    { what: 'a resource', path: (id: string) => `/inboxes/${id}` },
    { what: 'a list', path: () => '/inboxes' },
    { what: 'an unknown resource', path: () => `/inboxes/${newId('inbox')}` },
    { what: 'an invalid query', path: () => '/inboxes?limit=x' },
    { what: 'what it had no permission for', path: () => '/domains' },
    { what: 'an unknown environment', path: () => '/inboxes', headers: { 'x-env-id': 'env_x' } },
    {
      what: 'an organization that is not its own',
      path: () => '/inboxes',
      headers: { 'x-org-id': 'org_x' },
    },
  ];

  test.each(CHANGES.flatMap((change) => READS.map((read) => ({ ...change, ...read }))))(
    '$how, reading $what',
    async ({ values, path, headers = {} }) => {
      const { inbox, read, change } = await arrange();
      await change(values());
      for (let tries = 0; tries < 2; tries += 1)
        expectProblem(await read(path(inbox.id), { headers }), 'unauthenticated');
    },
  );

  test('also of the headers alone', async () => {
    const { read, change } = await arrange();
    await change({ revoked_at: new Date() });
    expect(await read(undefined, { method: 'HEAD' })).toMatchObject({ statusCode: 401, body: '' });
  });
});

describe('what has changed about a key counts at once:', () => {
  test('permissions', async () => {
    const { read, change } = await arrange({ permissions: ['inboxes:read'] });
    await change({ permissions: ['domains:read'] });
    expectProblem(await read(), 'permission_denied');
    expect((await read('/domains')).statusCode).toBe(200);
    const other = await arrange({ permissions: ['inboxes:read'] });
    await other.change({ permissions: ['domains:read'] });
    // Refused because of what was presumed, admitted as it is.
    expect((await other.read('/domains')).statusCode).toBe(200);
  });

  test('allowed addresses', async () => {
    const { read, change } = await arrange();
    await change({ allowed_cidrs: ['192.0.2.0/24'] });
    expectProblem(await read(), 'policy_violation');
    await change({ allowed_cidrs: [] });
    expect((await read()).statusCode).toBe(200);
  });

  test('the environment of what it reads', async () => {
    const { organization, read } = await arrange();
    const sandbox = await createInbox(app.worker, organization, {
      environmentId: organization.sandboxEnvironmentId,
    });
    const production = await createInbox(app.worker, organization);
    for (const { id } of [sandbox, production, sandbox, sandbox, production])
      expect((await read(`/inboxes/${id}`)).json()).toMatchObject({ id });
  });

  test('its inbox', async () => {
    const { organization, inbox, read, change } = await arrange();
    const other = await createInbox(app.worker, organization);
    await change({ env_id: inbox.environmentId, inbox_id: other.id });
    expectProblem(await read(), 'not_found');
    expect((await read(`/inboxes/${other.id}`)).statusCode).toBe(200);
  });

  test('its organization', async () => {
    const { organization, read } = await arrange();
    await app.worker.db
      .updateTable('organizations')
      .set({ deleted_at: new Date() })
      .where('id', '=', organization.organizationId)
      .execute();
    expectProblem(await read(), 'organization_deleted');
  });
});

test('a refused read is no request of the organization', async () => {
  const { organization, read, change } = await arrange();
  await change({ revoked_at: new Date() });
  const refused = await read();
  expectProblem(refused, 'unauthenticated');
  expect(refused.headers['www-authenticate']).toBe('Bearer');
  const later = await app.call('/org', { token: organization.token });
  // Requests are recorded in their order, a little later.
  await eventually(async () => {
    const { data } = (await app.call('/requests?order=asc', { token: organization.token })).json<{
      data: { id: string; status: number }[];
    }>();
    expect(data.map(({ id }) => id)).toContain(later.headers['x-request-id']);
    expect(data.filter(({ status }) => status !== 200)).toEqual([]);
  });
});
