import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { readAccountMail } from '../support/account-mail.ts';
import { createAccount, newAddress, PASSWORD } from '../support/accounts.ts';
import { createPageClient } from '../support/page-client.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

async function signedIn(email: string, password = PASSWORD) {
  const browser = createPageClient(app);
  await browser.open('/login');
  await browser.submit('/login', { email, password });
  return browser;
}

const linkTo = async (email: string) => {
  const token = (await readAccountMail(app, email)).at(-1)?.token ?? '';
  return `/invitations/accept?token=${token}`;
};

/** An owner's browser and organization. */
async function createOwner() {
  const account = await createAccount(app);
  const browser = await signedIn(account.email);
  await browser.open('/settings');
  const { id } = (await app.call('/org', { token: account.apiKey })).json();
  return { ...account, browser, org: `?org=${id}`, organizationId: id as string };
}

describe('the page of an organization', () => {
  test('invites a person, who accepts on the page of the link', async () => {
    const { browser, org } = await createOwner();
    const email = newAddress();
    await browser.open('/members');
    const invited = await browser.submit(`/members/invitations`, { email, role: 'developer' });
    expect(invited.body).toContain(email);
    const guest = createPageClient(app);
    const link = await linkTo(email);
    // Scanners open links, too.
    for (let count = 0; count < 3; count += 1) expect((await guest.open(link)).body).toContain('Accept');
    const weak = await guest.submit('/invitations/accept', { name: 'Grace', password: 'short' });
    expect(weak.statusCode).toBe(400);
    expect(weak.body).toContain('role="alert"');
    const accepted = await guest.submit('/invitations/accept', { name: 'Grace', password: PASSWORD });
    expect(guest.path).toBe(`/overview${org}`);
    expect(accepted.statusCode).toBe(200);
    expect((await createPageClient(app).open(link)).body).toContain('accepted already');
  });

  test('leads a person with an account through the sign-in, and to nothing with another account', async () => {
    const { browser, org } = await createOwner();
    const account = await createAccount(app);
    await browser.open('/members');
    await browser.submit(`/members/invitations`, { email: account.email, role: 'viewer' });
    const link = await linkTo(account.email);
    const other = await signedIn((await createAccount(app)).email);
    const refused = await other.open(link);
    expect(refused.body).toContain('another account');
    expect(refused.body).not.toContain('action="/invitations/accept"');
    const guest = createPageClient(app);
    const asked = await guest.open(link);
    expect(asked.body).not.toContain('type="password"');
    const [, login = ''] = /href="(\/login\?next=[^"]+)"/.exec(asked.body) ?? [];
    await guest.open(login.replaceAll('&amp;', '&'));
    await guest.submit('/login', { email: account.email, password: PASSWORD });
    expect(guest.path).toBe(link);
    await guest.submit('/invitations/accept');
    expect(guest.path).toBe(`/overview${org}`);
  });

  test('revokes an invitation', async () => {
    const { browser } = await createOwner();
    const email = newAddress();
    await browser.open('/members');
    const invited = await browser.submit(`/members/invitations`, { email, role: 'viewer' });
    expect(invited.body).toContain(email);
    await browser.submit(`/members/invitations/revoke`);
    expect(browser.path).toBe('/members?notice=invitation-revoked');
    expect((await createPageClient(app).open(await linkTo(email))).body).toContain('was revoked');
  });

  test('changes its name, and names what is wrong', async () => {
    const { browser } = await createOwner();
    const slug = `s${Date.now().toString(36)}`;
    await browser.open('/settings');
    const saved = await browser.submit(`/settings`, { name: 'Engines & Sons', slug });
    expect(saved.body).toContain('Engines &amp; Sons');
    const refused = await browser.submit(`/settings`, { name: 'Engines', slug: 'admin' });
    expect(refused.statusCode).toBe(400);
    expect(refused.body).toContain('role="alert"');
  });

  test('hands the organization over', async () => {
    const { browser, organizationId, userId } = await createOwner();
    const guest = await createAccount(app);
    await query(
      app.worker,
      sql`insert into members (org_id, user_id, role, created_at)
      values (${organizationId}, ${guest.userId}, 'admin', now()) returning user_id`,
    );
    await browser.open('/members');
    await browser.submit(`/members/owner`, { user_id: guest.userId });
    expect(browser.path).toBe('/members?notice=owner-changed');
    const roles = await query<{ role: string }>(
      app.worker,
      sql`select role from members where org_id = ${organizationId} and user_id = ${userId}`,
    );
    expect(roles).toEqual([{ role: 'admin' }]);
  });

  test('takes no form without its token, from whatever site', async () => {
    const { browser } = await createOwner();
    for (const [path, fields] of [
      ['/members/invitations', { email: newAddress(), role: 'admin' }],
      ['/settings', { name: 'x', slug: 'xy' }],
      ['/members/owner', { user_id: 'usr_x' }],
    ] as const)
      expect((await browser.post(path, fields)).statusCode).toBe(403);
    expect((await createPageClient(app).post('/invitations/accept', { token: 'x' })).statusCode).toBe(403);
  });
});
