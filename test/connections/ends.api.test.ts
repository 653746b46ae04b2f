import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { endSessionsOfSso } from '../../domain/sessions/session.service.ts';
import { readAccountMail } from '../support/account-mail.ts';
import { createAccountQuickly, newAddress, PASSWORD, type QuickAccount } from '../support/accounts.ts';
import { eventually } from '../support/eventually.ts';
import { expectWithin } from '../support/expect-within.ts';
import { connectTools } from '../support/mcp-client.ts';
import { connect } from '../support/oauth-client.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createStaff } from '../support/staff.ts';

const METRICS_TOKEN = 'let-me-see';
const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1', METRICS_TOKEN } });

/** The status of a request to `/mcp`. */
const call = async (token: string) => {
  const { statusCode } = await app.app.inject({
    method: 'POST',
    url: '/mcp',
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    payload: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
  });
  return statusCode;
};

const NEW_PASSWORD = 'another-marble-otter-9';
const post = (path: string, body: object, token?: string) =>
  app.call(path, { method: 'POST', body, ...(token === undefined ? {} : { token }) });

async function reset({ email }: QuickAccount) {
  await post('/auth/password/forgot', { email });
  const mails = await readAccountMail(app, email);
  const token = mails.at(-1)?.token ?? '';
  return post('/auth/password/reset', { token, password: NEW_PASSWORD });
}
async function changeAddress({ token }: QuickAccount) {
  const email = newAddress();
  await post('/user/me/change-email', { current_password: PASSWORD, new_email: email }, token);
  const mails = await readAccountMail(app, email);
  return post('/auth/change-email/confirm', { token: mails.at(-1)?.token });
}

const passwordChange = { current_password: PASSWORD, new_password: NEW_PASSWORD };

type Act = (account: QuickAccount) => ReturnType<typeof post>;

describe('what ends the sessions of a person ends their connections', () => {
  test.each<[string, Act]>([
    ['a reset password', reset],
    ['a changed password', ({ token }) => post('/user/me/change-password', passwordChange, token)],
    ['a changed address', changeAddress],
    [
      'the deletion of the account',
      ({ token }) => app.call('/user/me', { method: 'DELETE', token, body: { current_password: PASSWORD } }),
    ],
    ['signing out everywhere', ({ token }) => post('/user/me/sessions/revoke-all', {}, token)],
    [
      'signing out all other sessions',
      ({ token }) => post('/user/me/sessions/revoke-all', { keep_current: true }, token),
    ],
  ])('%s', async (_, act) => {
    const { account, client, connectionId, tokens } = await connect(app);
    const stranger = await connect(app);
    expect((await act(account)).statusCode).toBeLessThan(300);
    expect((await client.refresh(tokens.refresh_token)).json().error).toBe('invalid_grant');
    expect(await call(tokens.access_token)).toBe(401);
    expect(await call(stranger.tokens.access_token)).toBe(200);
    const entries = await app.worker.db
      .selectFrom('audit_entries')
      .select(['action', 'details', 'org_id'])
      .where('resource_id', '=', connectionId)
      .where('action', '=', 'connection.ended')
      .execute();
    expect(entries).toEqual([
      {
        action: 'connection.ended',
        org_id: account.organizationId,
        details: { cause: 'sign_out', user_id: account.userId },
      },
    ]);
  });

  test('staff who end the sessions', async () => {
    const { account, tokens } = await connect(app);
    const admin = await createStaff(app);
    const path = `/admin/users/${account.userId}/revoke-sessions`;
    const ended = await post(path, { note: 'Stolen laptop' }, admin.token);
    expect(ended.statusCode).toBe(200);
    expect(await call(tokens.access_token)).toBe(401);
  });

  test('staff who suspend the account, also after they reinstate it', async () => {
    const { account, client, tokens } = await connect(app);
    const admin = await createStaff(app);
    for (const change of ['suspend', 'reinstate']) {
      const path = `/admin/users/${account.userId}/${change}`;
      expect((await post(path, { note: 'Stolen laptop' }, admin.token)).statusCode).toBe(200);
      expect(await call(tokens.access_token)).toBe(401);
      expect((await client.refresh(tokens.refresh_token)).json().error).toBe('invalid_grant');
    }
  });

  test('the deletion of the SSO configuration by which they had signed in', async () => {
    const [one, other] = [await connect(app), await connect(app)];
    await query(
      app.worker,
      sql`update connections set sso_configuration_id = 'sso_of_one' where id = ${one.connectionId}`,
    );
    await app.database.peopleTransaction(({ db }) => endSessionsOfSso(db, 'sso_of_one'));
    expect(await call(one.tokens.access_token)).toBe(401);
    expect(await call(other.tokens.access_token)).toBe(200);
  });

  test('but signing out one session does not', async () => {
    const { account, tokens } = await connect(app);
    await app.call('/auth/logout', { method: 'POST', token: account.token });
    expect(await call(tokens.access_token)).toBe(200);
  });
});

test('a connection ends with the environment that the person chose', async () => {
  const account = await createAccountQuickly(app);
  const { id } = (
    await post('/org/environments', { name: 'Staging', kind: 'production' }, account.token)
  ).json();
  const { client, tokens } = await connect(app, { environment_id: id }, account);
  expect(await call(tokens.access_token)).toBe(200);
  const path = `/org/environments/${id}`;
  expect((await app.call(path, { method: 'DELETE', token: account.token })).statusCode).toBe(204);
  expect(await call(tokens.access_token)).toBe(401);
  expect((await client.refresh(tokens.refresh_token)).json().error).toBe('invalid_grant');
});

test('a connection to an inbox reaches nothing when the inbox is deleted', async () => {
  const account = await createAccountQuickly(app);
  const inbox = (await post('/inboxes', {}, account.token)).json();
  const { tokens } = await connect(app, { inbox: inbox.email }, account);
  const path = `/inboxes/${inbox.id}`;
  expect((await app.call(path, { method: 'DELETE', token: account.token })).statusCode).toBeLessThan(300);
  const tools = await connectTools(app, tokens.access_token);
  expect((await tools.call('list_inboxes')).answer.data).toEqual([]);
  const send = { inbox_id: inbox.id, to: ['ada@people.example'], subject: 'x', text_body: 'x' };
  expect((await tools.call('send_message', send)).answer.code).toBe('not_found');
  await tools.close();
});

test('a wait that is open ends with its connection', async () => {
  const account = await createAccountQuickly(app);
  const { id: inbox_id } = (await post('/inboxes', {}, account.token)).json();
  const { tokens } = await connect(app, {}, account);
  const tools = await connectTools(app, tokens.access_token);
  const waiting = tools.call('wait_for_message', { inbox_id, timeout_seconds: 50 });
  const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
  await eventually(async () => {
    const { body } = await app.app.inject({ url: '/metrics', headers });
    expect(body).toMatch(/^http_open_answers(?:\{.*\})? 1$/m);
  });
  expect((await post('/user/me/sessions/revoke-all', {}, account.token)).statusCode).toBe(200);
  // Long before the wait itself would end.
  const { answer } = await expectWithin(10_000, () => waiting);
  expect(answer).toMatchObject({ object: 'error', code: 'unauthenticated' });
  await tools.close();
});
