import { describe, expect, test } from '@jest/globals';
import { createKey, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import type { Call } from '../support/test-app.ts';

const DAY_MS = 86_400_000;

const app = useTestApp();

interface Policy {
  object: 'retention_policy';
  retention_days: number;
  effective_days: number;
  pending: boolean;
  first_deletion_at: string | null;
  postponed_until: string | null;
  updated_at: string | null;
}

const KEPT_FOREVER: Policy = {
  object: 'retention_policy',
  retention_days: 0,
  effective_days: 0,
  pending: false,
  first_deletion_at: null,
  postponed_until: null,
  updated_at: null,
};

const pathOf = ({ organizationId }: Pick<TestOrganization, 'organizationId'>) =>
  `/organizations/${organizationId}/retention-policy`;

async function arrange() {
  const organization = await createOrganization(app.worker);
  const call = (options: Call = {}, suffix = '') =>
    app.call(`${pathOf(organization)}${suffix}`, { token: organization.token, ...options });
  const set = (retention_days: unknown, token = organization.token) =>
    call({ method: 'PUT', body: { retention_days }, token });
  const postpone = (days: unknown) => call({ method: 'POST', body: { days } }, '/postpone');
  const read = async () => (await call()).json<Policy>();
  const starts = () =>
    app.commands.filter(({ start }) => start?.workflowId.includes(organization.organizationId));
  return { organization, call, set, postpone, read, starts };
}

describe('the retention policy', () => {
  test('keeps messages forever by default', async () => {
    const { read } = await arrange();
    expect(await read()).toEqual(KEPT_FOREVER);
  });

  test('is announced by its own run and takes effect after seven days', async () => {
    const { organization, set, read, starts } = await arrange();
    const before = Date.now();
    const policy = (await set(30)).json<Policy>();
    expect(policy).toMatchObject({
      retention_days: 30,
      effective_days: 0,
      pending: true,
      postponed_until: null,
    });
    const waitsMs = Date.parse(policy.first_deletion_at ?? '') - before;
    expect(Math.round(waitsMs / DAY_MS)).toBe(7);
    expect(await read()).toEqual(policy);
    expect(starts()).toMatchObject([
      {
        start: {
          workflowType: 'applyRetention',
          workflowId: `retention/${organization.organizationId}/change-1`,
          taskQueue: 'maintenance',
          input: { organizationId: organization.organizationId },
        },
      },
    ]);
  });

  test('set twice to the same value, even concurrently, changes once', async () => {
    const { set, read, starts } = await arrange();
    await Promise.all([set(30), set(30), set(30)]);
    const policy = await read();
    expect((await set(30)).json()).toEqual(policy);
    expect(starts()).toHaveLength(1);
  });

  test('set to 0 ends immediately and sends no email', async () => {
    const { set, starts } = await arrange();
    await set(30);
    expect((await set(0)).json()).toMatchObject({ retention_days: 0, effective_days: 0, pending: false });
    expect(starts()).toHaveLength(1);
  });

  test('set to the current value changes nothing', async () => {
    const { set, starts } = await arrange();
    expect((await set(0)).json()).toEqual(KEPT_FOREVER);
    expect(starts()).toEqual([]);
  });

  test.each([-1, 3_651, 1.5, '30', null, undefined])('rejects %p days', async (days) => {
    const { set, read } = await arrange();
    expectProblem(await set(days), 'validation_error');
    expect(await read()).toEqual(KEPT_FOREVER);
  });

  test('accepts 3,650 days', async () => {
    const { set } = await arrange();
    expect((await set(3_650)).statusCode).toBe(200);
  });

  test('is postponed from its first deletion, and no further by a repeated call', async () => {
    const { set, postpone } = await arrange();
    expectProblem(await postpone(14), 'conflict');
    const { first_deletion_at: first } = (await set(30)).json<Policy>();
    const until = new Date(Date.parse(first ?? '') + 14 * DAY_MS).toISOString();
    const postponed = (await postpone(14)).json<Policy>();
    expect(postponed).toMatchObject({ postponed_until: until, first_deletion_at: until, pending: true });
    expect((await postpone(14)).json()).toEqual(postponed);
    for (const days of [0, 91, 'x']) expectProblem(await postpone(days), 'validation_error');
  });

  test('is also served without the prefix, as the specification defines it', async () => {
    const { organization, read } = await arrange();
    const inject = (method: 'GET' | 'PUT' | 'POST', path = '', payload?: object) =>
      app.app.inject({
        method,
        url: `${pathOf(organization)}${path}`,
        headers: { authorization: `Bearer ${organization.token}` },
        ...(payload ? { payload } : {}),
      });
    const set = await inject('PUT', '', { retention_days: 30 });
    expect(set.statusCode).toBe(200);
    expect(set.json()).toEqual(await read());
    expect((await inject('GET')).json()).toEqual(await read());
    expect((await inject('POST', '/postpone', { days: 3 })).json()).toEqual(await read());
    app.contract.verify('PUT', pathOf(organization), set);
  });
});

describe('access', () => {
  test('is 404 for another organization', async () => {
    const { organization } = await arrange();
    const stranger = await createOrganization(app.worker);
    const token = stranger.token;
    expectProblem(await app.call(pathOf(organization), { token }), 'not_found');
    const set: Call = { method: 'PUT', body: { retention_days: 1 }, token };
    expectProblem(await app.call(pathOf(organization), set), 'not_found');
    const postpone: Call = { method: 'POST', body: { days: 1 }, token };
    expectProblem(await app.call(`${pathOf(organization)}/postpone`, postpone), 'not_found');
  });

  test('requires inboxes:read to read and retention:manage to set', async () => {
    const { organization, set, call } = await arrange();
    const reader = await createKey(app.worker, { ...organization, permissions: ['inboxes:read'] });
    expect((await call({ token: reader.token })).statusCode).toBe(200);
    expect(expectProblem(await set(30, reader.token), 'permission_denied').permission).toBe(
      'retention:manage',
    );
  });

  test('lets a key bound to an environment read but not set it', async () => {
    const { organization, set, call } = await arrange();
    const bound = await createKey(app.worker, {
      ...organization,
      environmentId: organization.sandboxEnvironmentId,
    });
    expect((await call({ token: bound.token })).statusCode).toBe(200);
    expect(expectProblem(await set(30, bound.token), 'permission_denied').permission).toBe(
      'retention:manage',
    );
  });

  test('lets a suspended organization read but not change it', async () => {
    const { organization, set, read } = await arrange();
    await app.worker.db
      .updateTable('organizations')
      .set({ status: 'suspended' })
      .where('id', '=', organization.organizationId)
      .execute();
    expectProblem(await set(30), 'organization_suspended');
    expect(await read()).toEqual(KEPT_FOREVER);
  });
});
