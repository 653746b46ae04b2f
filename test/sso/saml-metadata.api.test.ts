import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { sql } from 'kysely';
import { ServiceProvider } from 'samlify';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createMetadataSource } from '../../domain/sso/metadata-source.ts';
import { createSamlClient } from '../../domain/sso/saml/saml-client.ts';
import { refreshSsoMetadata, warnOfSsoCertificates } from '../../domain/sso/sso-metadata.ts';
import { createEgress, readEgressOptions } from '../../platform/egress/egress.ts';
import { createGuardedFetch } from '../../platform/egress/guarded-fetch.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createSamlKey, idpMetadata, SAML_ISSUER, type SamlKey } from '../support/saml-idp.ts';
import {
  activateUntested,
  createSsoOrganization,
  SSO_TEST_CONFIG,
  type SsoOrganization,
} from '../support/sso.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { useResource } from '../support/use-resource.ts';

const app = useTestApp({ config: SSO_TEST_CONFIG });
let key: SamlKey;
let nextKey: SamlKey;
let organization: SsoOrganization;
beforeAll(async () => {
  [key, nextKey] = await Promise.all([createSamlKey(), createSamlKey()]);
});
beforeEach(async () => {
  organization = await createSsoOrganization(app);
});

/** Publishes metadata, a page for each path. */
const publisher = useResource(
  async () => {
    const pages = new Map<string, { status: number; body: string; location?: string }>();
    const server = createServer((request, response) => {
      const { status, body, location } = pages.get(request.url ?? '') ?? { status: 404, body: '' };
      response
        .writeHead(status, { 'content-type': 'application/xml', ...(location ? { location } : {}) })
        .end(body);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return { pages, server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  },
  async ({ server }) => {
    server.close();
    await once(server, 'close');
  },
);

let pageNumber = 0;
function publish(
  body: string,
  { status = 200, location }: { status?: number; location?: string } = {},
): string {
  pageNumber += 1;
  publisher.pages.set(`/${pageNumber}`, { status, body, ...(location ? { location } : {}) });
  return `${publisher.origin}/${pageNumber}`;
}

const create = (change: object) =>
  app.call('/org/sso', {
    method: 'POST',
    token: organization.token,
    body: { type: 'saml', name: 'Test provider', domains: [organization.domain], ...change },
  });

describe('a SAML configuration', () => {
  test('shows what the identity provider has to know', async () => {
    const { id, ...created } = (await create({ idp_metadata_xml: idpMetadata([key]) })).json();
    const base = `${app.config.PUBLIC_URL}/api/v1/auth/sso/saml`;
    expect(created).toMatchObject({
      type: 'saml',
      status: 'draft',
      entity_id: SAML_ISSUER,
      issuer: null,
      client_id: null,
      allow_idp_initiated: false,
      certificate_expires_at: expect.any(String),
      sp_entity_id: `${base}/${id}`,
      acs_url: `${base}/${id}/acs`,
      sp_metadata_url: `${base}/metadata/${organization.organizationId}?configuration=${id}`,
      redirect_uri: null,
    });
    const metadata = await app.call(`/auth/sso/saml/metadata/${organization.organizationId}`);
    expect(metadata.body).toContain(`entityID="${base}/${id}"`);
    expect(metadata.body).toContain(`Location="${base}/${id}/acs"`);
    const other = await createSsoOrganization(app);
    expectProblem(await app.call(`/auth/sso/saml/metadata/${other.organizationId}`), 'not_found');
    expectProblem(await app.call('/auth/sso/saml/metadata/nothing'), 'not_found');
  });

  test('names its own addresses in its metadata, also beside an active one', async () => {
    const active = (await create({ idp_metadata_xml: idpMetadata([key]) })).json();
    await activateUntested(app, organization.token, active.id);
    const draft = (await create({ idp_metadata_xml: idpMetadata([nextKey]) })).json();
    const read = (url: string) => {
      const { pathname, search } = new URL(url);
      return app.call(`${pathname}${search}`, { prefix: '' });
    };
    for (const { sp_metadata_url, sp_entity_id, acs_url } of [active, draft]) {
      const metadata = await read(sp_metadata_url);
      expect(metadata.body).toContain(`entityID="${sp_entity_id}"`);
      expect(metadata.body).toContain(`Location="${acs_url}"`);
    }
    const plain = await app.call(`/auth/sso/saml/metadata/${organization.organizationId}`);
    expect(plain.body).toContain(`entityID="${active.sp_entity_id}"`);
    const other = await createSsoOrganization(app);
    const foreign = `/auth/sso/saml/metadata/${other.organizationId}?configuration=${active.id}`;
    expectProblem(await app.call(foreign), 'not_found');
  });

  test('states in its metadata which NameID and attributes it takes', async () => {
    const { sp_metadata_url: url } = (await create({ idp_metadata_xml: idpMetadata([key]) })).json();
    const { body } = await app.call(`${new URL(url).pathname}${new URL(url).search}`, { prefix: '' });
    const sp = ServiceProvider({ metadata: body }).entityMeta;
    expect(sp.getNameIDFormat()).toEqual([
      'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
      'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
    ]);
    expect(body).toMatch(/RequestedAttribute Name="email"[^>]* isRequired="true"/);
    expect(body).toMatch(/RequestedAttribute Name="displayName"[^>]* isRequired="false"/);
    // In the order of the schema (SAML metadata section 2.4.4).
    const names = ['<md:NameIDFormat', '<md:AssertionConsumerService', '<md:AttributeConsumingService'];
    const places = names.map((name) => body.indexOf(name));
    expect(places).toEqual([...places].sort((a, b) => a - b));
  });

  test('keeps its addresses when new metadata is activated', async () => {
    const { id, acs_url } = (await create({ idp_metadata_xml: idpMetadata([key]) })).json();
    await activateUntested(app, organization.token, id);
    const body = { idp_metadata_xml: idpMetadata([key, nextKey]) };
    const changed = await app.call(`/org/sso/${id}`, { method: 'PATCH', token: organization.token, body });
    expect(changed.json()).toMatchObject({
      id,
      status: 'active',
      acs_url,
      pending_changes: { tested_at: null },
    });
    await activateUntested(app, organization.token, id);
    const [row] = await query<{ xml: string }>(
      app.worker,
      sql`select idp_metadata_xml as xml from sso_configurations where id = ${id}`,
    );
    expect(row?.xml).toBe(body.idp_metadata_xml);
  });

  test.each([
    ['neither XML nor URL', {}],
    ['no XML', { idp_metadata_xml: 'metadata' }],
    ['broken XML', { idp_metadata_xml: '<a>' }],
    ['another document', { idp_metadata_xml: '<a/>' }],
    ['an OIDC issuer', { idp_metadata_xml: '<a/>', issuer: 'https://login.example.test' }],
    ['a URL at a metadata address', { idp_metadata_url: 'http://169.254.169.254/latest' }],
    ['a URL of another scheme', { idp_metadata_url: 'file:///etc/passwd' }],
    ['allow_idp_initiated that is no boolean', { idp_metadata_xml: '<a/>', allow_idp_initiated: 'yes' }],
  ])('is refused with %s', async (_name, change) => {
    expectProblem(await create(change), 'validation_error');
  });

  test('is refused with metadata that cannot be used', async () => {
    const good = idpMetadata([key]);
    const many = `<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata">${good.replace(/<\?xml[^>]*>/, '').repeat(2)}</md:EntitiesDescriptor>`;
    const weak = await createSamlKey();
    const elliptic = await createSamlKey({ keyType: 'ec' });
    for (const xml of [
      idpMetadata([]),
      idpMetadata([key], { use: 'use="encryption"' }),
      idpMetadata([key], { entityId: '' }),
      idpMetadata([key], { ssoUrl: 'javascript:alert(1)' }),
      idpMetadata([{ ...weak, certificate: 'AAAA' }]),
      // Only RSA signatures are accepted, so no login could pass.
      idpMetadata([elliptic]),
      good.replace('HTTP-Redirect', 'HTTP-POST'),
      good.replace('<md:Entity', '<!DOCTYPE a [<!ENTITY x "y">]><md:Entity'),
      `${good}<!-- -->`,
      many,
      idpMetadata(Array.from({ length: 11 }, () => key)),
    ])
      expectProblem(await create({ idp_metadata_xml: xml }), 'validation_error');
    expect((await create({ idp_metadata_xml: good })).statusCode).toBe(201);
    expect((await create({ idp_metadata_xml: idpMetadata([elliptic, key]) })).statusCode).toBe(201);
    expectProblem(
      await create({ idp_metadata_xml: good, idp_metadata_url: publish(good) }),
      'validation_error',
    );
  });

  test('reads its metadata from a URL, also with an Idempotency-Key', async () => {
    const idp_metadata_url = publish(idpMetadata([key]));
    const body = { type: 'saml', name: 'x', domains: [organization.domain], idp_metadata_url };
    const headers = { 'idempotency-key': 'one' };
    const call = () => app.call('/org/sso', { method: 'POST', token: organization.token, headers, body });
    const [first, second] = [await call(), await call()];
    expect(first.json()).toMatchObject({ entity_id: SAML_ISSUER, idp_metadata_url });
    expect(second.json()).toEqual(first.json());
  });

  test.each([
    ['does not exist', '', { status: 404 }],
    ['redirects to an internal address', '', { status: 302, location: 'http://169.254.169.254/' }],
    ['has other content', '<a/>', {}],
    ['has too much content', 'x'.repeat(300_000), {}],
  ])('is refused if the URL %s', async (_name, page, options) => {
    expectProblem(await create({ idp_metadata_url: publish(page, options) }), 'validation_error');
  });
});

describe('metadata at a URL', () => {
  const warn = jest.fn();
  const refresh = () => {
    const fetch = createGuardedFetch(createEgress(readEgressOptions(app.config)));
    const { parseMetadata } = createSamlClient({ publicUrl: app.config.PUBLIC_URL, allowHttp: true });
    return refreshSsoMetadata({
      database: app.worker,
      metadataSource: createMetadataSource(fetch),
      parseMetadata,
      logger: { warn },
    });
  };
  const storedXml = async (id: string) =>
    (
      await query<{ xml: string; isLater: boolean }>(
        app.worker,
        sql`select idp_metadata_xml as xml, metadata_due_at > now() as "isLater" from sso_configurations where id = ${id}`,
      )
    )[0];

  async function arrange() {
    const url = publish(idpMetadata([key]));
    const { id } = (await create({ idp_metadata_url: url })).json();
    await query(app.worker, sql`update sso_configurations set metadata_due_at = now() where id = ${id}`);
    return { id, path: new URL(url).pathname };
  }

  test('is read again daily, so that new certificates work', async () => {
    const { id, path } = await arrange();
    const next = idpMetadata([key, nextKey]);
    publisher.pages.set(path, { status: 200, body: next });
    expect(await refresh()).toBeGreaterThanOrEqual(1);
    expect(await storedXml(id)).toEqual({ xml: next, isLater: true });
    publisher.pages.set(path, { status: 200, body: idpMetadata([nextKey]) });
    await refresh();
    expect((await storedXml(id))?.xml).toBe(next);
  });

  test('says in the log why it could not be read', async () => {
    const { id, path } = await arrange();
    publisher.pages.set(path, { status: 200, body: '<a/>' });
    await refresh();
    const error = expect.objectContaining({
      message: expect.stringContaining('no SAML 2.0 identity provider'),
    });
    expect(warn).toHaveBeenCalledWith({ configurationId: id, err: error }, expect.any(String));
  });

  test.each([
    ['another identity provider', () => idpMetadata([nextKey], { entityId: 'https://evil.example.test' })],
    ['something else', () => '<a/>'],
  ])('changes nothing if it is of %s', async (_name, page) => {
    const { id, path } = await arrange();
    publisher.pages.set(path, { status: 200, body: page() });
    await refresh();
    expect(await storedXml(id)).toEqual({ xml: idpMetadata([key]), isLater: true });
  });
});

test('owners are warned 30 and 7 days before the last certificate ends, once each', async () => {
  const { id } = (await create({ idp_metadata_xml: idpMetadata([key]) })).json();
  await activateUntested(app, organization.token, id);
  const { outbox } = recordingOutbox();
  const warn = () =>
    warnOfSsoCertificates({ database: app.worker, notifications: createNotificationService({ outbox }) });
  const mails = async () =>
    (
      await query(
        app.worker,
        sql`select from notifications where org_id = ${organization.organizationId} and template = 'sso-certificate-ends'`,
      )
    ).length;
  const endIn = (days: number) =>
    query(
      app.worker,
      sql`update sso_configurations set certificate_expires_at = now() + ${days} * interval '1 day' where id = ${id}`,
    );
  const counts: number[] = [];
  for (const days of [40, 29, 20, 6, 1]) {
    await endIn(days);
    await warn();
    await warn();
    counts.push(await mails());
  }
  expect(counts).toEqual([0, 1, 1, 2, 2]);
});
