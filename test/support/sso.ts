import { randomBytes } from 'node:crypto';
import type { LightMyRequestResponse } from 'fastify';
import { sql } from 'kysely';
import { newId } from '../../platform/ids.ts';
import { newNetwork } from './accounts.ts';
import { OIDC_CLIENT } from './identity-providers.ts';
import { createOrganization, type TestOrganization } from './organizations.ts';
import { query } from './query.ts';
import { createTestSession } from './sessions.ts';
import type { TestApp } from './test-app.ts';

/** Identity providers of the tests listen here. */
export const SSO_TEST_CONFIG = {
  TRUST_PROXY: '127.0.0.1',
  EGRESS_ALLOW: '127.0.0.1/32',
  EGRESS_ALLOW_PORTS: '*',
};

export interface SsoOrganization extends TestOrganization {
  /** Verified. */
  domain: string;
  /** A session of the owner, by password. */
  ownerSession: string;
}

export async function verifyTestDomain(app: TestApp, organizationId: string, domain: string): Promise<void> {
  await query(
    app.worker,
    sql`insert into domains (id, org_id, domain_name, ownership_token, verification_status, observed, generation_started_at,
      verified_at, created_at, updated_at)
    values (${newId('domain')}, ${organizationId}, ${domain}, 'x', 'verified', '{}', now(), now(), now(), now())`,
  );
}

/** An organization with a verified domain. */
export async function createSsoOrganization(app: TestApp): Promise<SsoOrganization> {
  const organization = await createOrganization(app.worker);
  const domain = `${randomBytes(8).toString('hex')}.example.com`;
  await verifyTestDomain(app, organization.organizationId, domain);
  const { token: ownerSession } = await createTestSession(app.worker, organization.ownerId);
  return { ...organization, domain, ownerSession };
}

export const oidcSettings = (issuer: string, domain: string) => ({
  type: 'oidc',
  name: 'Test provider',
  issuer,
  client_id: OIDC_CLIENT.clientId,
  client_secret: OIDC_CLIENT.clientSecret,
  domains: [domain],
  default_role: 'developer',
});

export async function createConfiguration(app: TestApp, token: string, body: object): Promise<string> {
  const created = await app.call('/org/sso', { method: 'POST', token, body });
  if (created.statusCode !== 201) throw new Error(created.body);
  return created.json().id;
}

/** Marks a configuration, or its pending changes, as tested without a login, and activates them. */
export async function activateUntested(app: TestApp, token: string, id: string): Promise<void> {
  await query(
    app.worker,
    sql`update sso_configurations set status = 'tested', tested_at = now()
    where replaces_id = ${id} or (id = ${id} and status <> 'active')`,
  );
  const activated = await app.call(`/org/sso/${id}/activate`, { method: 'POST', token });
  if (activated.statusCode !== 200) throw new Error(activated.body);
}

/** A browser: keeps the cookies of this service. */
export class Browser {
  readonly cookies = new Map<string, string>();
  readonly network = newNetwork();
  readonly #app: TestApp;

  constructor(app: TestApp) {
    this.#app = app;
  }

  async call(path: string, call: Parameters<TestApp['call']>[1] = {}): Promise<LightMyRequestResponse> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await this.#app.call(path, {
      ...call,
      headers: { ...this.network, ...(cookie === '' ? {} : { cookie }), ...call.headers },
    });
    for (const { name, value } of response.cookies as { name: string; value: string }[])
      if (value === '') this.cookies.delete(name);
      else this.cookies.set(name, value);
    return response;
  }

  /** Begins a login. Returns the URL at the identity provider. */
  async start(organization: string, query = ''): Promise<URL> {
    const response = await this.call(`/auth/sso/${organization}${query}`);
    if (response.statusCode !== 200) throw new Error(response.body);
    return new URL(response.json().redirect_url);
  }

  /** Opens a URL of this service that another site sent the browser to. */
  open(url: URL, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> {
    return this.call(`${url.pathname}${url.search}`, { prefix: '', headers });
  }
}

export const JSON_ONLY = { accept: 'application/json' };

export async function readAttempts(app: TestApp, token: string, id: string) {
  const response = await app.call(`/org/sso/${id}/attempts`, { token });
  return response.json().data as {
    purpose: string;
    succeeded: boolean;
    checks: { name: string; passed: boolean; seen: string | null; expected: string | null }[];
  }[];
}
