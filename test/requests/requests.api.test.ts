import { describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { pino } from 'pino';
import type { ApiRequest } from '../../domain/requests/api-request.entity.ts';
import { deleteExpiredRequests } from '../../domain/requests/delete-requests.ts';
import { createRequestRecorder } from '../../domain/requests/request-recorder.ts';
import { lowestIdAt, newId } from '../../platform/ids.ts';
import { eventually } from '../support/eventually.ts';
import { impersonate } from '../support/impersonation.ts';
import { createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { createPageClient } from '../support/page-client.ts';
import { expectProblem } from '../support/problems.ts';
import { recordStatements } from '../support/recorded-statements.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';
import { testStack } from '../support/stack.ts';
import { startTestApp } from '../support/test-app.ts';

const logger = pino({ level: 'silent' });
const app = useTestApp();

interface Listed {
  id: string;
  method: string;
  path: string;
  status: number;
  code: string | null;
  credential: { kind: string; id: string };
  duration_ms: number;
  created_at: string;
}

const list = async (token: string, query = ''): Promise<Listed[]> => {
  const response = await app.call(`/requests${query}`, { token });
  expect(response.statusCode).toBe(200);
  return response.json<{ data: Listed[] }>().data;
};
/** The calls before those that list them, oldest first, once as many have been written. */
const calls = (token: string, count: number, query = '?') =>
  eventually(async () => {
    const listed = await list(token, `${query}&limit=100&order=asc`);
    const others = listed.filter(({ path }) => path !== '/api/v1/requests');
    expect(others).toHaveLength(count);
    return others;
  });

const row = (organizationId: string, fields: Partial<ApiRequest> = {}): ApiRequest => ({
  id: newId('request'),
  organizationId,
  environmentId: 'env_test',
  method: 'GET',
  path: '/api/v1/inboxes',
  status: 200,
  code: null,
  credentialKind: 'api_key',
  credentialId: 'key_test',
  durationMs: 1,
  ...fields,
});

describe('GET /requests', () => {
  test('lists the calls of the organization: what was called, by whom, and how it ended', async () => {
    const organization = await createOrganization(app.worker);
    const { token, keyId, ownerId, productionEnvironmentId } = organization;
    const session = await createTestSession(app.worker, ownerId);
    const inbox = await createInbox(app.worker, organization);
    const first = await app.call(`/inboxes/${inbox.id}/messages?q=secret%20words`, { token });
    await app.call('/inboxes', { token: session.token });
    await app.call('/drafts/drf_none', { token });
    await app.call('/suppressions/ada%40people.example', { token, method: 'DELETE' });
    await app.call('/inboxes', { token, method: 'POST', body: { unknown: 'ask_live_secret' } });
    const key = { 'idempotency-key': 'one' };
    for (let count = 0; count < 2; count += 1)
      await app.call('/suppressions', { token, method: 'POST', headers: key, body: { email: 'no address' } });
    await app.call('/lists/ask_live_secret/ada@people.example', { token });
    await app.call('/lists/send/block', { token });
    await app.call('/sendmail/ask_live_secret/ada@people.example?token=secret', { token, method: 'POST' });
    const inOrder = await calls(token, 10);
    expect(inOrder.map(({ method, path, status, code }) => `${method} ${path} ${status} ${code}`)).toEqual([
      `GET /api/v1/inboxes/${inbox.id}/messages 200 null`,
      'GET /api/v1/inboxes 200 null',
      'GET /api/v1/drafts/{id} 404 not_found',
      'DELETE /api/v1/suppressions/{email} 404 not_found',
      'POST /api/v1/inboxes 400 validation_error',
      'POST /api/v1/suppressions 400 validation_error',
      'POST /api/v1/suppressions 400 validation_error',
      'GET /api/v1/lists/{direction}/{effect} 404 not_found',
      'GET /api/v1/lists/send/block 200 null',
      'POST /api/v1/sendmail/…/… 404 not_found',
    ]);
    expect(inOrder[0]).toEqual({
      object: 'request',
      id: first.headers['x-request-id'],
      env_id: productionEnvironmentId,
      method: 'GET',
      path: expect.any(String),
      status: 200,
      code: null,
      credential: { kind: 'api_key', id: keyId, name: expect.any(String) },
      duration_ms: expect.any(Number),
      created_at: expect.stringMatching(/Z$/),
    });
    expect(inOrder[1]?.credential).toEqual({ kind: 'user', id: ownerId, name: expect.any(String) });
    expect(JSON.stringify(inOrder)).not.toMatch(/secret|ada@|ada%40|no address/);

    expect(await calls(token, 1, `?status=200&credential_id=${ownerId}`)).toHaveLength(1);
    expect((await calls(token, 4, '?status=404')).every(({ status }) => status === 404)).toBe(true);
    expect(await calls(token, 0, '?since=2100-01-01T00:00:00Z')).toEqual([]);
    const since = inOrder[2]?.created_at ?? '';
    expect((await calls(token, 8, `?since=${since}`))[0]?.id).toBe(inOrder[2]?.id);
  });

  test('pages through them in either order', async () => {
    const { token } = await createOrganization(app.worker);
    const ids: unknown[] = [];
    for (let count = 0; count < 5; count += 1)
      ids.push((await app.call('/inboxes', { token })).headers['x-request-id']);
    await calls(token, 5);
    const page = await app.call('/requests?limit=2&order=asc', { token });
    const next = await app.call(`/requests?limit=2&order=asc&cursor=${page.json().next_cursor}`, { token });
    const seen = [...page.json<{ data: Listed[] }>().data, ...next.json<{ data: Listed[] }>().data];
    expect(seen.map(({ id }) => id)).toEqual(ids.slice(0, 4));
    expect((await list(token, '?failed=true&order=asc')).map(({ status }) => status)).toEqual(
      (await list(token, '?order=asc')).map(({ status }) => status).filter((status) => status >= 400),
    );
    expectProblem(await app.call('/requests?status=2000', { token }), 'validation_error');
    expectProblem(await app.call('/requests?until=tomorrow', { token }), 'validation_error');
    expectProblem(await app.call('/requests?path=', { token }), 'validation_error');
    expectProblem(await app.call('/requests?since=yesterday', { token }), 'validation_error');
  });

  test('filters by the start of the path, by failure and by time', async () => {
    const { token, organizationId } = await createOrganization(app.worker);
    const at = (minutes: number) => new Date(Date.now() - minutes * 60_000);
    const calls: [number, Partial<ApiRequest>][] = [
      [50, { path: '/api/v1/inboxes/inb_1/messages', status: 201 }],
      [40, { path: '/api/v1/inboxes', status: 500 }],
      [30, { path: '/api/v1/messages/100%_/x', status: 404 }],
      [20, { path: '/api/v1/messages', status: 200 }],
    ];
    await app.worker.db
      .insertInto('api_requests')
      .values(
        calls.map(([minutes, fields]) => {
          const {
            organizationId: _omitted,
            environmentId,
            credentialKind,
            credentialId,
            durationMs,
            ...rest
          } = row(organizationId, fields);
          return {
            ...rest,
            id: lowestIdAt('request', at(minutes)),
            org_id: organizationId,
            env_id: environmentId,
            credential_kind: credentialKind,
            credential_id: credentialId,
            duration_ms: durationMs,
          };
        }),
      )
      .execute();
    const statuses = async (query: string) => {
      const until = encodeURIComponent(at(10).toISOString());
      return (await list(token, `?order=asc&until=${until}&${query}`)).map(({ status }) => status);
    };
    expect(await statuses('path=/inboxes')).toEqual([201, 500]);
    expect(await statuses('path=/api/v1/inboxes')).toEqual([201, 500]);
    expect(await statuses('path=messages')).toEqual([404, 200]);
    // Neither character is a wildcard.
    expect(await statuses('path=/messages/100%25_/')).toEqual([404]);
    expect(await statuses('path=/messages/%25')).toEqual([]);
    expect(await statuses('failed=true')).toEqual([500, 404]);
    expect(await statuses('failed=true&status=404')).toEqual([404]);
    expect(await statuses(`since=${encodeURIComponent(at(35).toISOString())}`)).toEqual([404, 200]);
  });

  test('shows a bound credential only its own calls, and no one those of others', async () => {
    const organization = await createOrganization(app.worker);
    const { token, organizationId, productionEnvironmentId } = organization;
    const inbox = await createInbox(app.worker, organization);
    const bound = await createKey(app.worker, {
      organizationId,
      environmentId: productionEnvironmentId,
      inboxId: inbox.id,
    });
    await app.call('/inboxes', { token });
    await app.call('/drafts', { token: bound.token });
    await calls(token, 2);
    expect((await calls(bound.token, 1))[0]).toMatchObject({
      path: '/api/v1/drafts',
      credential: { id: bound.keyId },
    });
    expect(await calls(bound.token, 0, `?credential_id=${organization.keyId}`)).toEqual([]);
    const stranger = await createOrganization(app.worker);
    expect(await calls(stranger.token, 0, `?credential_id=${organization.keyId}`)).toEqual([]);
    const blind = await createKey(app.worker, { organizationId, permissions: ['messages:read'] });
    expectProblem(await app.call('/requests', { token: blind.token }), 'permission_denied');
  });

  test('has neither pages nor the calls of support staff', async () => {
    const { organizationId, ownerId, token } = await createOrganization(app.worker);
    const browser = createPageClient(app);
    browser.cookies.set('session', (await createTestSession(app.worker, ownerId)).token);
    expect((await browser.open('/settings')).statusCode).toBe(200);
    const staff = await impersonate(app, organizationId);
    await app.call('/inboxes', { token: staff.token });
    await app.call('/inboxes', { token });
    expect((await calls(token, 1))[0]?.credential.kind).toBe('api_key');
  });

  test('ends after seven days, when the sweep deletes what is older', async () => {
    const { organizationId, token } = await createOrganization(app.worker);
    const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000);
    const recorder = createRequestRecorder({ database: app.database, logger });
    const old = row(organizationId, { id: lowestIdAt('request', daysAgo(7.01)) });
    const young = row(organizationId, { id: lowestIdAt('request', daysAgo(6.99)) });
    recorder.record(old);
    recorder.record(young);
    await recorder.close();
    const stored = async () =>
      (
        await app.worker.db
          .selectFrom('api_requests')
          .select('id')
          .where('org_id', '=', organizationId)
          .where('path', '=', '/api/v1/inboxes')
          .execute()
      ).map(({ id }) => id);
    expect((await stored()).sort()).toEqual([old.id, young.id].sort());
    expect((await calls(token, 1)).map(({ id }) => id)).toEqual([young.id]);
    await deleteExpiredRequests(app.worker);
    expect(await stored()).toEqual([young.id]);
  });

  test('a deletion and a page follow an index', async () => {
    const plan = async (statement: string, connectionString: string) => {
      const client = new pg.Client({ connectionString });
      await client.connect();
      await client.query('begin');
      await client.query('set local enable_seqscan = off');
      await client.query(`select set_config('app.org_id', 'org_test', true)`);
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${statement}`);
      await client.query('rollback');
      await client.end();
      return rows.map((each) => each['QUERY PLAN']).join('\n');
    };
    const { apiUrl, workerUrl } = testStack().postgres;
    const page = `select id from api_requests where org_id = 'org_test' and id >= 'req_0'`;
    expect(await plan(`${page} order by id desc limit 26`, apiUrl)).toMatch(/Index.*api_requests/);
    const errors = `${page} and status = 429 and status >= 400 order by id desc limit 26`;
    expect(await plan(errors, apiUrl)).toMatch(/Index.*api_requests/);
    const oldest = `select id from api_requests where id < 'req_0' order by id limit 10`;
    expect(await plan(oldest, workerUrl)).toContain('api_requests_pkey');
  });
});

describe('recording calls', () => {
  test('takes no statement on the way of a request', async () => {
    const { token } = await createOrganization(app.worker);
    await app.call('/inboxes', { token });
    const recorded = recordStatements();
    await app.call('/inboxes', { token });
    const during = recorded.texts();
    recorded.stop();
    expect(during.length).toBeGreaterThan(0);
    expect(during.filter((text) => text.includes('api_requests'))).toEqual([]);
    await calls(token, 2);
  });

  test('writes what it has collected when the service stops', async () => {
    const { organizationId, token } = await createOrganization(app.worker);
    const stopping = await startTestApp();
    await stopping.call('/inboxes', { token });
    await stopping.close();
    const { length } = await app.worker.db
      .selectFrom('api_requests')
      .select('id')
      .where('org_id', '=', organizationId)
      .execute();
    expect(length).toBe(1);
  });

  test('is bounded for all and for each organization, and counts what it leaves out', async () => {
    const [flooding, quiet] = await Promise.all([
      createOrganization(app.worker),
      createOrganization(app.worker),
    ]);
    let dropped = 0;
    const recorder = createRequestRecorder({
      database: app.database,
      logger,
      flushIntervalMs: 60_000,
      onDropped: (count) => {
        dropped += count;
      },
    });
    for (let count = 0; count < 2_500; count += 1) recorder.record(row(flooding.organizationId));
    recorder.record(row(quiet.organizationId));
    expect(dropped).toBe(500);
    for (let organization = 0; organization < 20; organization += 1)
      for (let count = 0; count < 1_000; count += 1) recorder.record(row(`org_unknown${organization}`));
    expect(dropped).toBe(500 + 2_001);
    await recorder.close();
    const countOf = async (organizationId: string) =>
      (
        await app.worker.db
          .selectFrom('api_requests')
          .select('id')
          .where('org_id', '=', organizationId)
          .execute()
      ).length;
    expect(await countOf(flooding.organizationId)).toBe(2_000);
    expect(await countOf(quiet.organizationId)).toBe(1);
    // Calls of an organization that does not exist (any more) are not written.
    expect(await countOf('org_unknown0')).toBe(0);
  });

  test('goes on after a failure of the database, and counts what was lost', async () => {
    const { organizationId } = await createOrganization(app.worker);
    let dropped = 0;
    let isDown = true;
    const database = {
      get db() {
        if (isDown) throw new Error('The database is down');
        return app.database.db;
      },
    };
    const recorder = createRequestRecorder({
      database,
      logger,
      onDropped: (count) => {
        dropped += count;
      },
    });
    recorder.record(row(organizationId));
    await recorder.flush();
    expect(dropped).toBe(1);
    isDown = false;
    const again = row(organizationId);
    recorder.record(again);
    await recorder.close();
    const rows = await app.worker.db
      .selectFrom('api_requests')
      .select('id')
      .where('org_id', '=', organizationId)
      .execute();
    expect(rows).toEqual([{ id: again.id }]);
  });
});
