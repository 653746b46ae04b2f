import { describe, expect, test } from '@jest/globals';
import { sql } from '@mikro-orm/core';
import { createAccountQuickly, newAddress, newNetwork, PASSWORD } from '../support/accounts.ts';
import { createOrganization } from '../support/organizations.ts';
import { useTestApp } from '../support/resources.ts';
import { createSsoOrganization, oidcSettings } from '../support/sso.ts';
import { createStaff } from '../support/staff.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
const TIMES = 40;

/** Sends a request 40 times at the same time, each from a network of its own. Returns how many have this status. */
async function countAnswers(status: number, path: string, call: (index: number) => Call): Promise<number> {
  const requests = Array.from({ length: TIMES }, (_, index) =>
    app.call(path, { method: 'POST', headers: newNetwork(), ...call(index) }),
  );
  return (await Promise.all(requests)).filter(({ statusCode }) => statusCode === status).length;
}

async function countMails(email: string, template: string): Promise<number> {
  const [row] = await app.worker.query<{ count: number }>(sql`
    select count(*)::int as count from notifications where email = ${email} and template = ${template}`);
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
    await app.worker.query(sql`update users set password_hash = null where id = ${userId} returning id`);
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
    const [row] = await app.worker.query<{ count: number }>(
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
};

describe('40 times at the same time', () => {
  test.each(Object.entries(ACTIONS))(
    '%s stay within their limit',
    async (_name, act) => {
      const [done, limit] = await act();
      expect(done).toBe(limit);
      // Most of a minute of processor time for the password hashes of sign-ups.
    },
    180_000,
  );
});

test('guesses from 40 networks at the same time count', async () => {
  const { email } = await createAccountQuickly(app);
  const guesses = await countAnswers(401, '/auth/login', () => ({
    body: { email, password: 'wrong guess' },
  }));
  // Five are free, the next one delays those after it; a slow machine lets few more pass.
  expect(guesses).toBeLessThanOrEqual(9);
});
