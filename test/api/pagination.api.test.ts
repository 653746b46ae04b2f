import { beforeAll, expect, test } from '@jest/globals';
import { newId } from '../../platform/ids.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();
let organization: TestOrganization;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
  for (let index = 0; index < 7; index += 1) await createInbox(app.worker, organization);
});

interface ListResponse {
  data: { id: string }[];
  has_more: boolean;
  next_cursor: string | null;
}
const list = async (path: string) =>
  (await app.call(path, { token: organization.token })).json<ListResponse>();

async function collectPages(path: string, limit: number): Promise<string[]> {
  const seen: string[] = [];
  let cursor = '';
  for (;;) {
    const page = await list(`${path}${path.includes('?') ? '&' : '?'}limit=${limit}${cursor}`);
    seen.push(...page.data.map(({ id }) => id));
    expect(page.has_more).toBe(page.next_cursor !== null);
    if (page.next_cursor === null) return seen;
    expect(page.data).toHaveLength(limit);
    cursor = `&cursor=${page.next_cursor}`;
  }
}

test('pages of any size contain every row once, newest first or oldest first', async () => {
  const all = (await list('/inboxes')).data.map(({ id }) => id);
  expect(all).toEqual([...all].sort().reverse());
  for (const limit of [1, 2, 3, 7, 100]) expect(await collectPages('/inboxes', limit)).toEqual(all);
  expect(await collectPages('/inboxes?order=asc', 3)).toEqual([...all].reverse());
});

test('rows added during pagination do not cause repeated or skipped rows', async () => {
  const before = (await list('/inboxes')).data.map(({ id }) => id);
  const first = await list('/inboxes?limit=3');
  const newest = await createInbox(app.worker, organization);
  const rest = await list(`/inboxes?limit=100&cursor=${first.next_cursor}`);
  expect([...first.data, ...rest.data].map(({ id }) => id)).toEqual(before);
  expect((await list('/inboxes?limit=1')).data.map(({ id }) => id)).toEqual([newest.id]);
});

test('threads of the same millisecond are ordered by id', async () => {
  const inbox = await createInbox(app.worker, organization);
  const ids = Array.from({ length: 9 }, () => newId('thread'));
  await app.worker.systemTransaction(async ({ db }) => {
    for (const [index, id] of ids.entries())
      await db
        .insertInto('threads')
        .values({
          id,
          org_id: organization.organizationId,
          env_id: organization.productionEnvironmentId,
          inbox_id: inbox.id,
          subject: 'Tie',
          base_subject: 'tie',
          message_count: 1,
          last_message_at: new Date(Date.UTC(2026, 0, 1) + Math.floor(index / 4)),
          last_message_id: null,
          last_inbound_at: null,
          last_outbound_at: null,
        })
        .execute();
  });
  for (const limit of [1, 2, 4, 5]) {
    expect(await collectPages(`/inboxes/${inbox.id}/threads`, limit)).toEqual([...ids].reverse());
    expect(await collectPages('/threads?order=asc', limit)).toEqual(ids);
  }
});

test('a cursor is valid only for its list, filters, order and tenant', async () => {
  const { next_cursor: cursor } = await list('/inboxes?limit=1');
  const otherOrganization = await createOrganization(app.worker);
  const request = (path: string, token = organization.token) => app.call(path, { token });
  expectProblem(await request(`/api-keys?cursor=${cursor}`), 'invalid_cursor');
  expectProblem(await request(`/inboxes?order=asc&cursor=${cursor}`), 'invalid_cursor');
  expectProblem(await request(`/inboxes?cursor=${cursor}`, otherOrganization.token), 'invalid_cursor');
  const tampered = `${cursor?.slice(0, -2)}AA`;
  for (const invalid of [tampered, `${cursor}=`, `${cursor}A`, 'x', 'e30', '%00', 'ä'])
    expect((await request(`/inboxes?cursor=${encodeURIComponent(invalid)}`)).statusCode).toBe(400);
  expectProblem(await request(`/inboxes?cursor=${tampered}`), 'invalid_cursor');
  expect((await list(`/inboxes?limit=50&cursor=${cursor}`)).data.length).toBeGreaterThan(0);
});

test.each([
  'limit=0',
  'limit=101',
  'limit=-1',
  'limit=1.5',
  'limit=x',
  'limit=',
  'limit=1&limit=2',
  'order=up',
  'unknown=1',
  'cursor=',
])('rejects the query %s', async (query) => {
  expectProblem(await app.call(`/inboxes?${query}`, { token: organization.token }), 'validation_error');
});
