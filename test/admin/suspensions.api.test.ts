import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { settleSuspensionWorkflowId } from '../../workflows/suspensions/settle-held-work.contract.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createStaff, type TestStaff } from '../support/staff.ts';

const app = useTestApp();
let admin: TestStaff;
let support: TestStaff;
let organization: TestOrganization;
let inboxId: string;
beforeAll(async () => {
  admin = await createStaff(app);
  support = await createStaff(app, { role: 'support' });
});
beforeEach(async () => {
  organization = await createOrganization(app.worker);
  inboxId = (await createInbox(app.worker, organization)).id;
});

const LEVELS = ['organization', 'environment', 'inbox'] as const;
type Level = (typeof LEVELS)[number];
const idOf = (level: Level) =>
  ({
    organization: organization.organizationId,
    environment: organization.productionEnvironmentId,
    inbox: inboxId,
  })[level];
const pathOf = (level: Level, action: string) => {
  const below = {
    organization: '',
    environment: `/environments/${idOf(level)}`,
    inbox: `/inboxes/${idOf(level)}`,
  };
  return `/admin/orgs/${organization.organizationId}${below[level]}/${action}`;
};
const change = (
  level: Level,
  action: 'suspend' | 'reinstate',
  body: unknown = { reason: 'policy', note: 'Ticket 1' },
) => app.call(pathOf(level, action), { method: 'POST', token: admin.token, body });
const createDraft = () =>
  app.call(`/inboxes/${inboxId}/drafts`, {
    method: 'POST',
    token: organization.token,
    body: { subject: 'x' },
  });
const list = async (path: string, token = admin.token) => (await app.call(path, { token })).json();

describe.each(LEVELS)('an %s', (level) => {
  test('is suspended and reinstated by an admin, with entries in both logs', async () => {
    expect((await createDraft()).statusCode).toBe(201);
    const suspended = await change(level, 'suspend');
    expect(suspended.statusCode).toBe(200);
    expect(suspended.json()).toMatchObject({
      type: level,
      id: idOf(level),
      org_id: organization.organizationId,
      status: 'suspended',
      suspensions: [
        {
          target: { type: level, id: idOf(level) },
          reason: 'policy',
          note: 'Ticket 1',
          created_by: { kind: 'staff', id: admin.userId },
          lifted_at: null,
          lifted_by: null,
        },
      ],
    });
    const problem = expectProblem(await createDraft(), `${level}_suspended`);
    expect(JSON.stringify(problem)).not.toMatch(/Ticket|policy/);
    expect((await app.call(`/inboxes/${inboxId}`, { token: organization.token })).statusCode).toBe(200);

    const reinstated = await change(level, 'reinstate');
    expect(reinstated.json()).toMatchObject({ status: 'active', suspensions: [] });
    expect((await createDraft()).statusCode).toBe(201);
    const { id } = suspended.json().suspensions[0];
    expect(
      app.commands.filter(({ start }) => start?.workflowId === settleSuspensionWorkflowId(id, 'reinstated')),
    ).toHaveLength(1);

    const own = (await app.call('/org/audit-log', { token: organization.token })).json().data;
    expect(own).toMatchObject([
      { action: `${level}.reinstated`, actor: { kind: 'staff' }, reason: 'Ticket 1' },
      { action: `${level}.suspended`, actor: { kind: 'staff', id: admin.userId }, reason: 'Ticket 1' },
    ]);
    const log = await list(`/admin/audit-log?resource_id=${idOf(level)}`);
    expect(log.data).toMatchObject([
      { action: `${level}.reinstated`, staff: { id: admin.userId } },
      { action: `${level}.suspended`, details: { reason: 'policy' } },
    ]);
  });

  test('is not changed by bad input, and not by support', async () => {
    for (const body of [
      {},
      { reason: 'policy' },
      { reason: 'policy', note: ' ' },
      { reason: 'spam', note: 'x' },
      { reason: 'policy', note: 'x', extra: 1 },
    ])
      expectProblem(await change(level, 'suspend', body), 'validation_error');
    expectProblem(await change(level, 'reinstate'), 'conflict');
    const body = { reason: 'policy', note: 'x' };
    for (const action of ['suspend', 'reinstate'])
      expectProblem(
        await app.call(pathOf(level, action), { method: 'POST', token: support.token, body }),
        'permission_denied',
      );
    const elsewhere = pathOf(level, 'suspend').replace(organization.organizationId, 'org_none');
    expectProblem(await app.call(elsewhere, { method: 'POST', token: admin.token, body }), 'not_found');
    expect((await createDraft()).statusCode).toBe(201);
  });
});

test('a reason names only its own suspension, and a closed organization can be suspended', async () => {
  await query(
    app.worker,
    sql`update organizations set deleted_at = now() where id = ${organization.organizationId}`,
  );
  await change('organization', 'suspend', { reason: 'abuse', note: 'Spam' });
  const problem = expectProblem(
    await change('organization', 'reinstate', { reason: 'payment', note: 'Paid' }),
    'conflict',
  );
  expect(problem.fix).toContain('abuse');
  expectProblem(await change('organization', 'suspend', { reason: 'abuse', note: 'Again' }), 'conflict');
});

test('two suspensions at the same time become one', async () => {
  const responses = await Promise.all([1, 2, 3].map(() => change('organization', 'suspend')));
  expect(responses.map(({ statusCode }) => statusCode).sort()).toEqual([200, 409, 409]);
  const { data } = await list(`/admin/orgs/${organization.organizationId}/suspensions?open=true`);
  expect(data).toHaveLength(1);
});

test('the list shows past and open suspensions in pages, to support too', async () => {
  await change('organization', 'suspend');
  await change('organization', 'reinstate', { reason: 'policy', note: 'Solved' });
  await change('inbox', 'suspend', { reason: 'abuse', note: 'Spam' });
  const path = `/admin/orgs/${organization.organizationId}/suspensions`;
  const first = await list(`${path}?limit=1`, support.token);
  expect(first).toMatchObject({ has_more: true, data: [{ target: { id: inboxId }, reason: 'abuse' }] });
  const second = await list(`${path}?limit=1&cursor=${first.next_cursor}`, support.token);
  expect(second).toMatchObject({
    has_more: false,
    data: [
      {
        lifted_note: 'Solved',
        lifted_by: { kind: 'staff', id: admin.userId },
        lifted_at: expect.any(String),
      },
    ],
  });
  expect((await list(`${path}?open=true`)).data).toHaveLength(1);
  expect((await list(`${path}?open=false`)).data).toMatchObject([{ reason: 'policy' }]);
  expectProblem(await app.call('/admin/orgs/org_none/suspensions', { token: admin.token }), 'not_found');
});

describe('in bulk', () => {
  const bulk = (action: 'suspend' | 'reinstate', items: unknown, token = admin.token) =>
    app.call(`/admin/bulk/${action}`, {
      method: 'POST',
      token,
      body: { items, reason: 'support', note: 'Migration' },
    });

  test('each item has its own result, and one that fails does not affect the others', async () => {
    const other = await createOrganization(app.worker);
    const items = [
      { type: 'organization', id: other.organizationId },
      { type: 'inbox', id: 'inb_none' },
      { type: 'environment', id: organization.sandboxEnvironmentId },
      { type: 'inbox', id: inboxId },
      { type: 'inbox', id: inboxId },
      { type: 'inbox', id: organization.organizationId },
    ];
    const suspended = await bulk('suspend', items);
    expect(suspended.statusCode).toBe(200);
    const done = { status: 'done' };
    const failed = (code: string) => ({ status: 'failed', error: { code, detail: expect.any(String) } });
    expect(suspended.json().results).toEqual(
      [done, failed('not_found'), done, done, failed('conflict'), failed('not_found')].map(
        (result, index) => ({
          ...items[index],
          ...result,
        }),
      ),
    );
    expectProblem(await createDraft(), 'inbox_suspended');
    const reinstated = await bulk('reinstate', items.slice(2, 4));
    expect(reinstated.json().results).toMatchObject([done, done]);
    expect((await createDraft()).statusCode).toBe(201);
    const log = await list(`/admin/audit-log?resource_id=${inboxId}`);
    expect(log.data).toHaveLength(2);
  });

  test('takes 1 to 100 items, of admins alone', async () => {
    const item = { type: 'inbox', id: 'inb_none' };
    expectProblem(await bulk('suspend', []), 'validation_error');
    expectProblem(await bulk('suspend', Array(101).fill(item)), 'validation_error');
    expectProblem(await bulk('suspend', [{ type: 'user', id: 'usr_x' }]), 'validation_error');
    expectProblem(await bulk('suspend', [item], support.token), 'permission_denied');
    const nul = await bulk('suspend', [{ type: 'inbox', id: 'inb_\u0000' }]);
    expect(nul.statusCode).toBeLessThan(500);
  });
});
