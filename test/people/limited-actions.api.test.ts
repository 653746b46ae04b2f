import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { startSession } from '../../domain/people/start-session.ts';
import { sha256 } from '../../platform/crypto.ts';
import { newId } from '../../platform/ids.ts';
import { createAccountQuickly, newAddress, newNetwork, PASSWORD, signIn } from '../support/accounts.ts';
import { administerLimits, setLimit, type TestLimits } from '../support/limits.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createSoftwareAuthenticator } from '../support/software-authenticator.ts';
import { createConfiguration, createSsoOrganization, oidcSettings } from '../support/sso.ts';
import { createStaff } from '../support/staff.ts';
import type { Call } from '../support/test-app.ts';
import { enrollTotp, totpCode } from '../support/totp.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
const TIMES = 40;
let limits: TestLimits;
beforeAll(() => {
  limits = administerLimits({ database: app.worker });
});

/** Sends a request 40 times at the same time, each from a network of its own. Returns how many have this status. */
async function countAnswers(status: number, path: string, call: (index: number) => Call): Promise<number> {
  const requests = Array.from({ length: TIMES }, (_, index) =>
    app.call(path, { method: 'POST', headers: newNetwork(), ...call(index) }),
  );
  return (await Promise.all(requests)).filter(({ statusCode }) => statusCode === status).length;
}

async function countMails(email: string, template: string): Promise<number> {
  const [row] = await query<{ count: number }>(
    app.worker,
    sql`select count(*)::int as count from notifications where email = ${email} and template = ${template}`,
  );
  return row?.count ?? 0;
}

/** Each limited action of people and organizations: how often it took effect, and how often it may. */
const ACTIONS: Record<string, () => Promise<[done: number, limit: number]>> = {
  async 'emails to reset a password'() {
    const { email } = await createAccountQuickly(app);
    expect(await countAnswers(202, '/auth/password/forgot', () => ({ body: { email } }))).toBe(TIMES);
    return [await countMails(email, 'reset-password'), 3];
  },
  async 'emails to recover an account'() {
    const { email, token } = await createAccountQuickly(app);
    await app.call('/user/me', { method: 'DELETE', token, body: { current_password: PASSWORD } });
    expect(await countAnswers(202, '/auth/password/forgot', () => ({ body: { email } }))).toBe(TIMES);
    return [await countMails(email, 'account-recoverable'), 3];
  },
  async 'emails to verify a sign-up'() {
    const email = newAddress();
    const body = { email, password: PASSWORD, name: 'Ada', organization_name: 'Engines' };
    await countAnswers(202, '/auth/signup', () => ({ body }));
    return [await countMails(email, 'verify-email'), 3];
  },
  async 'emails to confirm a new address'() {
    const { token, userId } = await createAccountQuickly(app);
    // A fresh session needs no password then, whose check has a queue of its own.
    await query(app.worker, sql`update users set password_hash = null where id = ${userId} returning id`);
    const email = newAddress();
    await countAnswers(202, '/user/me/change-email', () => ({ token, body: { new_email: email } }));
    return [await countMails(email, 'confirm-new-email'), 3];
  },
  async 'invitations to one address'() {
    const { token } = await createAccountQuickly(app);
    const email = newAddress();
    return [
      await countAnswers(201, '/org/invitations', () => ({ token, body: { email, role: 'viewer' } })),
      1,
    ];
  },
  async 'organizations of an owner'() {
    const { token } = await createAccountQuickly(app);
    const body = { name: 'Next' };
    // The sign-up has created the first one.
    return [1 + (await countAnswers(201, '/user/me/organizations', () => ({ token, body }))), 10];
  },
  async 'single sign-on configurations'() {
    const { token, domain } = await createSsoOrganization(app);
    const body = oidcSettings('https://idp.example.com', domain);
    return [await countAnswers(201, '/org/sso', () => ({ token, body })), 20];
  },
  async environments() {
    const { token, organizationId } = await createOrganization(app.worker);
    for (const letter of ['a', 'b', 'c'])
      await countAnswers(201, '/org/environments', (index) => {
        const slug = `${letter}${index}`;
        return { token, body: { name: slug, slug } };
      });
    const [row] = await query<{ count: number }>(
      app.worker,
      sql`select count(*)::int as count from environments where org_id = ${organizationId}`,
    );
    return [row?.count ?? 0, 100];
  },
  async impersonations() {
    const { token } = await createStaff(app);
    const { organizationId } = await createOrganization(app.worker);
    const body = { reason: 'Ticket 4711', duration_minutes: 5 };
    return [await countAnswers(201, `/admin/orgs/${organizationId}/impersonate`, () => ({ token, body })), 5];
  },
  async 'open upgrade requests'() {
    const { token } = await createAccountQuickly(app);
    const body = { tier: 'business', note: 'More mail.' };
    return [await countAnswers(201, '/org/upgrade-requests', () => ({ token, body })), 1];
  },
  async 'second factors'() {
    const { token } = await createAccountQuickly(app);
    const options = await Promise.all(
      Array.from({ length: TIMES }, () =>
        app.call('/auth/mfa/webauthn/register-options', { method: 'POST', token }),
      ),
    );
    const keys = options.map((answer) => createSoftwareAuthenticator().register(answer.json()));
    const register = (index: number) => ({ token, body: { response: keys[index] } });
    return [await countAnswers(201, '/auth/mfa/webauthn/register', register), 10];
  },
  async 'guesses at a password'() {
    const { email } = await createAccountQuickly(app);
    const body = { email, password: 'wrong guess' };
    const guesses = await countAnswers(401, '/auth/login', () => ({ body }));
    // Five are free, and the sixth delays those after it by a second; a slow machine lets a few more pass.
    expect(guesses).toBeGreaterThanOrEqual(5);
    return [Math.max(guesses, 9), 9];
  },
  async 'guesses in a known device'() {
    const account = await createAccountQuickly(app);
    const device = (await signIn(app, account.email)).cookies.find(({ name }) => name === 'device')?.value;
    // Beyond the failures of the device the attempts of the account count, which strangers have used up.
    await query(
      app.worker,
      sql`insert into sign_in_attempts (key_hash, failures, last_attempt_at, blocked_until)
      values (${sha256(`account:${account.email}`)}, 17, now(), now() + interval '15 minutes') returning key_hash`,
    );
    const body = { email: account.email, password: 'wrong guess' };
    const headers = () => ({ ...newNetwork(), cookie: `device=${device}` });
    return [await countAnswers(401, '/auth/login', () => ({ body, headers: headers() })), 10];
  },
  async 'guesses at the second factor of one sign-in'() {
    const account = await createAccountQuickly(app);
    const code = await addTotp(account.token);
    const { mfa_token } = (await signIn(app, account.email)).json();
    const guess = { mfa_token, method: 'totp', code: '000000' };
    await countAnswers(401, '/auth/mfa/challenge', () => ({ body: guess }));
    const [row] = await query<{ failures: number }>(
      app.worker,
      sql`select failures from mfa_challenges where user_id = ${account.userId}`,
    );
    // The person's other sign-ins are not delayed any more; this one is void.
    await query(
      app.worker,
      sql`delete from sign_in_attempts where key_hash = ${sha256(`account:mfa:${account.userId}`)} returning key_hash`,
    );
    expect(await countAnswers(200, '/auth/mfa/challenge', () => ({ body: { ...guess, code } }))).toBe(0);
    return [row?.failures ?? 0, 5];
  },
  async 'sessions of a person'() {
    const { userId } = await createAccountQuickly(app);
    for (let round = 0; round < 3; round += 1) await startSessions(userId);
    const [row] = await query<{ count: number }>(
      app.worker,
      sql`select count(*)::int as count from sessions where user_id = ${userId} and revoked_at is null`,
    );
    return [row?.count ?? 0, 100];
  },
  async 'known devices of a person'() {
    const { userId } = await createAccountQuickly(app);
    for (let round = 0; round < 2; round += 1) await startSessions(userId);
    const [row] = await query<{ count: number }>(
      app.worker,
      sql`select count(*)::int as count from known_devices where user_id = ${userId}`,
    );
    return [row?.count ?? 0, 50];
  },
  async 'open invitations'() {
    const { token } = await createAccountQuickly(app);
    const invite = () =>
      countAnswers(201, '/org/invitations', () => ({ token, body: { email: newAddress(), role: 'viewer' } }));
    return [(await invite()) + (await invite()), 50];
  },
  async 'open set-up links of single sign-on'() {
    const { token } = await createAccountQuickly(app);
    return [await countAnswers(201, '/org/sso/setup-links', () => ({ token, body: {} })), 5];
  },
  async 'set-up links to one address'() {
    const { token } = await createAccountQuickly(app);
    const body = { email: newAddress() };
    return [await countAnswers(201, '/org/sso/setup-links', () => ({ token, body })), 1];
  },
  async 'readings of the keys of an identity provider'() {
    const { token, domain } = await createSsoOrganization(app);
    const id = await createConfiguration(app, token, oidcSettings('https://idp.example.com', domain));
    const refused = await countAnswers(429, `/org/sso/${id}/refresh`, () => ({ token }));
    return [TIMES - refused, 1];
  },
  async 'inboxes of a plan'() {
    const { token, organizationId } = await createOrganization(app.worker);
    await setLimit(limits, organizationId, { resource: 'inboxes', limit: 7 });
    return [await countAnswers(201, '/inboxes', () => ({ token, body: {} })), 7];
  },
  async 'domains of a plan'() {
    const { token, organizationId } = await createOrganization(app.worker);
    await setLimit(limits, organizationId, { resource: 'domains', limit: 3 });
    const name = newId('domain').slice(4).toLowerCase();
    const add = (index: number) => ({ token, body: { domain_name: `${name}${index}.example` } });
    return [await countAnswers(201, '/domains', add), 3];
  },
  async 'labels of a message'() {
    const organization = await createOrganization(app.worker);
    const { token } = organization;
    const inbox = await createInbox(app.worker, organization);
    const body = { to: [{ email: 'ada@example.com' }], subject: 'Notes', text_body: 'On the engine.' };
    const { id } = (await app.call(`/inboxes/${inbox.id}/messages`, { method: 'POST', token, body })).json();
    const label = (index: number) => ({ token, body: { labels: [`a${index}`, `b${index}`, `c${index}`] } });
    return [await countAnswers(200, `/messages/${id}/labels`, label), 33];
  },
  async 'running exports'() {
    const { token, organizationId } = await createOrganization(app.worker);
    const path = `/organizations/${organizationId}/export`;
    expect(await countAnswers(202, path, () => ({ method: 'GET', token }))).toBe(TIMES);
    const rows = await query(app.worker, sql`select id from exports where org_id = ${organizationId}`);
    return [rows.length, 1];
  },
  async 'running replays of an endpoint'() {
    const { token } = await createOrganization(app.worker);
    const endpoint = { url: 'https://receiver.example.test/hook', events: ['message.sent'] };
    const created = await app.call('/webhooks/endpoints', { method: 'POST', token, body: endpoint });
    const body = { since: '2026-01-01T00:00:00.000Z' };
    const path = `/webhooks/endpoints/${created.json().id}/replay`;
    return [await countAnswers(202, path, () => ({ token, body })), 1];
  },
};

/** Signs a person in 40 times at the same time, each time in another browser. */
const startSessions = (userId: string) =>
  Promise.all(
    Array.from({ length: TIMES }, () =>
      app.database.peopleTransaction(({ db }) =>
        startSession(db, { userId, method: 'password', ip: '192.0.2.1', userAgent: null }),
      ),
    ),
  );

/** Enrolls an authenticator app. Returns a code that is valid now. */
async function addTotp(token: string): Promise<string> {
  const { secret } = await enrollTotp((path, body) => app.call(path, { method: 'POST', token, body }));
  return totpCode(secret);
}

describe('40 times at the same time', () => {
  test.each(Object.entries(ACTIONS))(
    '%s stay within their limit',
    async (_name, act) => {
      const [done, limit] = await act();
      expect(done).toBe(limit);
      // The sign-ups compute 34 password hashes.
    },
    180_000,
  );
});
