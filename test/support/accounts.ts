import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { createPasswordHashing } from '../../domain/identity/password.ts';
import { readAccountMail } from './account-mail.ts';
import { createOrganization } from './organizations.ts';
import { query } from './query.ts';
import { createTestSession } from './sessions.ts';
import { QUICK_HASH, type TestApp } from './test-app.ts';

export const PASSWORD = 'quiet-otter-marble-77';

export const newAddress = () => `p${randomBytes(8).toString('hex')}@people.example`;

/** Headers of a client in a network of its own, because throttles count by network. Needs TRUST_PROXY. */
export const newNetwork = () => ({
  'x-forwarded-for': `2001:db8:${randomBytes(2).toString('hex')}:${randomBytes(2).toString('hex')}::1`,
});

export interface TestAccount {
  email: string;
  userId: string;
  /** Session token. */
  token: string;
  apiKey: string;
}

export type QuickAccount = Omit<TestAccount, 'apiKey'> & { organizationId: string };

/** The same account without sign-up, which takes most of a second so that its time reveals nothing. */
export async function createAccountQuickly(app: TestApp): Promise<QuickAccount> {
  const { organizationId, ownerId: userId } = await createOrganization(app.worker);
  const email = newAddress();
  await query(
    app.worker,
    sql`update users set email = ${email}, name = 'Ada Lovelace', email_verified_at = now(),
      password_hash = ${CHEAP_HASH}
    where id = ${userId}`,
  );
  const { token } = await createTestSession(app.worker, userId);
  return { email, userId, organizationId, token };
}

const CHEAP_HASH = await createPasswordHashing(QUICK_HASH).hash(PASSWORD, null);

/** Signs up and verifies, over HTTP. */
export async function createAccount(app: TestApp): Promise<TestAccount> {
  const email = newAddress();
  const headers = newNetwork();
  const fields = { email, password: PASSWORD, name: 'Ada Lovelace', organization_name: 'Analytical Engines' };
  await app.call('/auth/signup', { method: 'POST', body: fields, headers });
  const mail = (await readAccountMail(app, email)).at(-1);
  const body = { token: mail?.token, password: PASSWORD };
  const verified = await app.call('/auth/verify-email', { method: 'POST', body, headers });
  if (verified.statusCode !== 200) throw new Error(verified.body);
  const { token, api_key, user } = verified.json();
  return { email, userId: user.id, token, apiKey: api_key };
}

export function signIn(app: TestApp, email: string, password = PASSWORD, headers = newNetwork()) {
  return app.call('/auth/login', { method: 'POST', body: { email, password }, headers });
}
