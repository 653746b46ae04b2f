import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { eventually } from '../support/eventually.ts';
import { connectTools, toolsUrl } from '../support/mcp-client.ts';
import { createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { recordStatements } from '../support/recorded-statements.ts';
import { useTestApp } from '../support/resources.ts';
import type { LogLine } from '../support/test-app.ts';

const lines: LogLine[] = [];
const app = useTestApp({ onLogLine: (line) => lines.push(line) });
const limited = useTestApp({ config: { RATE_LIMIT_PER_SECOND: '1', RATE_LIMIT_BURST: '5' } });
beforeAll(async () => {
  await toolsUrl(app);
});

async function arrange(to = app) {
  const organization = await createOrganization(to.worker);
  const inbox = await createInbox(to.worker, organization);
  const { token, keyId } = organization;
  const get = async (path: string) => (await to.call(path, { token })).json();
  return { organization, inbox, token, keyId, get };
}
const send = (inboxId: string) => ({
  inbox_id: inboxId,
  to: ['ada@people.example'],
  subject: 'Hello',
  text_body: 'x',
});
const post = async (url: URL, token: string, message: object) =>
  fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
  });

describe('a call of a tool', () => {
  test('is one call of its operation: in the list of calls and in the log', async () => {
    const { inbox, token, get } = await arrange();
    const tools = await connectTools(app, token);
    await tools.names();
    await tools.call('send_message', send(inbox.id));
    await tools.call('whoami');
    await tools.call('get_message', { message_id: 'msg_01k0000000000000000000000a' });
    await tools.call('get_message', {});
    await tools.close();
    const seen = await eventually(async () => {
      const { data } = (await get('/requests?order=asc')) as {
        data: {
          method: string;
          path: string;
          status: number;
          code: string | null;
        }[];
      };
      const calls = data.filter(({ path }) => path !== '/mcp');
      expect(calls.filter(({ path }) => path.includes('/messages'))).toHaveLength(2);
      return data;
    });
    expect(seen.filter(({ path }) => !/requests|^\/mcp$/.test(path))).toMatchObject([
      { method: 'POST', path: `/api/v1/inboxes/${inbox.id}/messages`, status: 201 },
      { method: 'GET', path: '/api/v1/me', status: 200 },
      {
        method: 'GET',
        path: '/api/v1/messages/msg_01k0000000000000000000000a',
        status: 404,
        code: 'not_found',
      },
    ]);
    const ids = lines
      .filter(({ msg }) => msg === 'request')
      .map((line) => line as unknown as { reqId?: string; requestId?: string; route: string });
    const ofSend = ids.find(({ route }) => route === '/api/v1/inboxes/:inboxId/messages');
    const ofMcp = ids.filter(({ route }) => route === '/mcp');
    expect(ofMcp.map(({ requestId }) => requestId)).toContain(ofSend?.requestId);
  });

  test('counts once, unless its operation is not counted; messages of the protocol do not', async () => {
    const { token, organization } = await arrange();
    const tools = await connectTools(app, token);
    await tools.names();
    await tools.call('whoami');
    for (let count = 0; count < 3; count += 1) await tools.call('list_inboxes');
    await tools.close();
    await eventually(async () => {
      // Tests of other files apply the changes of all organizations.
      const [counted] = await query(
        app.worker,
        sql`select sum(amount)::int as calls from (
          select amount from usage_deltas where org_id = ${organization.organizationId} and counter = 'api_calls'
          union all
          select amount from usage_counters where org_id = ${organization.organizationId} and counter = 'api_calls') changes`,
      );
      expect(counted).toEqual({ calls: 3 });
    });
  });

  /** At the same time, so that the limit does not refill. */
  const flood = async (token: string, message: object) => {
    const url = await toolsUrl(limited);
    const responses = await Promise.all(Array.from({ length: 20 }, () => post(url, token, message)));
    return Promise.all(
      responses.map(async (response) => ({ status: response.status, body: await response.text() })),
    );
  };

  test('takes one share of the rate limit, whose refusal the model can read', async () => {
    const { token } = await arrange(limited);
    const call = { method: 'tools/call', params: { name: 'list_inboxes', arguments: {} } };
    const answers = await flood(token, call);
    const done = answers.filter(({ status, body }) => status === 200 && !body.includes('isError'));
    const refused = answers.filter(({ body }) => body.includes('"isError":true'));
    expect(done.length).toBeGreaterThanOrEqual(5);
    expect(refused.length).toBeGreaterThanOrEqual(1);
    for (const { body } of refused) {
      expect(body).toContain('rate_limited');
      expect(body).toContain('retry_after_seconds');
    }
    // Reading the bodies of refused calls has a limit, too.
    const unread = answers.filter(({ status }) => status === 429);
    expect(unread.length).toBeGreaterThanOrEqual(1);
    expect(done.length + refused.length + unread.length).toBe(answers.length);
  });

  test('that sends beyond the limit is announced as a refused send', async () => {
    const { inbox, token, organization } = await arrange(limited);
    const call = { method: 'tools/call', params: { name: 'send_message', arguments: send(inbox.id) } };
    const answers = await flood(token, call);
    expect(answers.some(({ body }) => body.includes('rate_limited'))).toBe(true);
    const events = await limited.worker.db
      .selectFrom('events')
      .select('type')
      .where('org_id', '=', organization.organizationId)
      .where('type', '=', 'message.rejected')
      .execute();
    expect(events.length).toBeGreaterThanOrEqual(1);
  });
});

test('a tool call authenticates once, unless its environment depends on the resource', async () => {
  const { organization, inbox, token } = await arrange();
  const bound = await createKey(app.worker, {
    organizationId: organization.organizationId,
    environmentId: organization.productionEnvironmentId,
  });
  const recorded = recordStatements();
  const count = () => recorded.texts().filter((text) => text.includes('find_api_key')).length;
  for (const [credential, name, args, expected] of [
    [token, 'whoami', {}, 1],
    [token, 'list_messages', {}, 1],
    [token, 'list_messages', { inbox_id: inbox.id }, 2],
    [bound.token, 'list_messages', { inbox_id: inbox.id }, 1],
    [bound.token, 'get_message', { message_id: 'msg_01k0000000000000000000000a' }, 1],
  ] as const) {
    const tools = await connectTools(app, credential);
    const before = count();
    await tools.call(name, args);
    expect({ name, args, authentications: count() - before }).toEqual({
      name,
      args,
      authentications: expected,
    });
    await tools.close();
  }
  recorded.stop();
});

test('an unbound key works in the environment of the resource, or in the one that the host names', async () => {
  const { organization, token } = await arrange();
  const inbox = await createInbox(app.worker, organization, {
    environmentId: organization.sandboxEnvironmentId,
  });
  const tools = await connectTools(app, token);
  const { answer } = await tools.call('create_draft', { inbox_id: inbox.id, subject: 'There' });
  expect(answer).toMatchObject({ object: 'draft', inbox_id: inbox.id });
  expect((await tools.call('list_inboxes')).answer.data).not.toContainEqual(
    expect.objectContaining({ id: inbox.id }),
  );
  await tools.close();
});

test('a bound key reaches what it is bound to', async () => {
  const { organization, inbox } = await arrange();
  const other = await createInbox(app.worker, organization);
  const bound = await createKey(app.worker, {
    organizationId: organization.organizationId,
    environmentId: organization.productionEnvironmentId,
    inboxId: inbox.id,
  });
  const tools = await connectTools(app, bound.token);
  expect((await tools.call('whoami')).answer).toMatchObject({ binding: 'inbox', inbox_id: inbox.id });
  expect((await tools.call('send_message', send(inbox.id))).isError).toBe(false);
  expect((await tools.call('send_message', send(other.id))).answer.code).toBe('not_found');
  await tools.close();
});

test('a suspended organization reads but sends nothing', async () => {
  const { organization, inbox, token } = await arrange();
  await app.worker.systemTransaction(({ db }) =>
    db
      .updateTable('organizations')
      .set({ status: 'suspended' })
      .where('id', '=', organization.organizationId)
      .execute(),
  );
  const tools = await connectTools(app, token);
  expect((await tools.call('list_messages')).isError).toBe(false);
  expect((await tools.call('send_message', send(inbox.id))).answer.code).toBe('organization_suspended');
  expect((await tools.call('wait_for_message', { inbox_id: inbox.id })).answer.code).toBe(
    'organization_suspended',
  );
  await tools.close();
});
