import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { WebhookDeliveryEntity } from '../../domain/webhooks/delivery.entity.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { VERIFY_DOMAIN } from '../../workflows/domains/verify-domain.contract.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { type PublishedRecord, publishRecords } from '../support/domains.ts';
import { createTestReceiptService } from '../support/mail-services.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { useResource } from '../support/use-resource.ts';

const server = useResource(startDnsServer, (dns) => dns.stop());
const app = useTestApp(() => ({
  config: {
    DNS_SERVERS: server.address,
    DNS_TIMEOUT_MS: '100',
    DNS_TRIES: '2',
    INBOUND_MX_HOST: 'mx.mail.test',
  },
}));

const uniqueName = () => `d${randomUUID().slice(0, 8)}.example`;

interface DomainAnswer {
  id: string;
  domain_name: string;
  verification_status: string;
  status_reason: string | null;
  records: PublishedRecord[];
  [field: string]: unknown;
}

async function add(
  organization: Pick<TestOrganization, 'token'>,
  body: object = { domain_name: uniqueName() },
) {
  const response = await app.call('/domains', { method: 'POST', token: organization.token, body });
  expect(response.statusCode).toBe(201);
  return response.json<DomainAnswer>();
}

const verify = async ({ token }: Pick<TestOrganization, 'token'>, { id }: { id: string }) => {
  const response = await app.call(`/domains/${id}/verify`, { method: 'POST', token });
  expect(response.statusCode).toBe(200);
  return response.json<DomainAnswer>();
};

test('the private key of DKIM is encrypted at rest', async () => {
  const { id } = await add(await createOrganization(app.worker));
  const [key] = await query<{ private: Buffer }>(
    app.worker,
    sql`select private_key as private from dkim_keys where domain_id = ${id}`,
  );
  const stored = key?.private.toString('latin1') ?? '';
  expect(stored.length).toBeGreaterThan(1_000);
  // Neither PEM, nor PKCS #8 in base64 or DER, which start with an ASN.1 sequence.
  expect(stored).not.toMatch(/PRIVATE KEY|^MII|^0\x82/);
});

const statusOf = ({ records }: DomainAnswer) =>
  Object.fromEntries(records.map(({ purpose, status }) => [purpose, status]));

const eventsOf = ({ organizationId }: TestOrganization) =>
  app.worker.db
    .selectFrom('events')
    .select(columnsOf(EventEntity))
    .where('org_id', '=', organizationId)
    .where('type', '=', 'domain.verified')
    .execute();

describe('adding a domain', () => {
  test('returns the records to publish and starts checking them', async () => {
    const organization = await createOrganization(app.worker);
    const name = uniqueName();
    const domain = await add(organization, { domain_name: `${name.toUpperCase()}.` });
    expect(domain).toMatchObject({
      domain_name: name,
      verification_status: 'pending',
      spf_status: 'pending',
    });
    expect(
      domain.records.map(({ purpose, type, required, status }) => [purpose, type, required, status]),
    ).toEqual([
      ['ownership', 'TXT', true, 'missing'],
      ['spf', 'TXT', true, 'missing'],
      ['dkim', 'TXT', true, 'missing'],
      ['mx', 'MX', false, 'missing'],
      ['dmarc', 'TXT', false, 'missing'],
    ]);
    expect(domain.records.find(({ purpose }) => purpose === 'spf')?.value).toBe(
      'v=spf1 include:bounces.mail.test ~all',
    );
    const start = app.commands.find(
      (command) =>
        command.start?.input &&
        'domainId' in command.start.input &&
        command.start.input.domainId === domain.id,
    )?.start;
    expect(start).toMatchObject({
      workflowType: VERIFY_DOMAIN,
      workflowId: `domain/${domain.id}/1`,
      taskQueue: 'maintenance',
    });
  });

  test('with the same client_id returns 200 and the existing domain', async () => {
    const organization = await createOrganization(app.worker);
    const first = await add(organization, { domain_name: uniqueName(), client_id: 'mine' });
    const again = await app.call('/domains', {
      method: 'POST',
      token: organization.token,
      body: { domain_name: uniqueName(), client_id: 'mine' },
    });
    expect(again.statusCode).toBe(200);
    expect(again.json().id).toBe(first.id);
  });

  test('with the same client_id in another environment returns the existing domain', async () => {
    const organization = await createOrganization(app.worker);
    const first = await add(organization, { domain_name: uniqueName(), client_id: 'mine' });
    const again = await app.call('/domains', {
      method: 'POST',
      token: organization.token,
      headers: { 'x-env-id': organization.sandboxEnvironmentId },
      body: { domain_name: uniqueName(), client_id: 'mine' },
    });
    expect(again.statusCode).toBe(200);
    expect(again.json().id).toBe(first.id);
  });

  test('with the same client_id five times concurrently creates one domain', async () => {
    const organization = await createOrganization(app.worker);
    const body = { domain_name: uniqueName(), client_id: 'at-once' };
    const call = () => app.call('/domains', { method: 'POST', token: organization.token, body });
    const answers = await Promise.all(Array.from({ length: 5 }, call));
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([200, 200, 200, 200, 201]);
    expect(new Set(answers.map((answer) => answer.json().id)).size).toBe(1);
  });

  test('rejects a name the organization already has, but not one that is pending elsewhere', async () => {
    const [one, other] = [await createOrganization(app.worker), await createOrganization(app.worker)];
    const { domain_name } = await add(one);
    const again = await app.call('/domains', { method: 'POST', token: one.token, body: { domain_name } });
    expectProblem(again, 'already_exists');
    await add(other, { domain_name });
  });

  test.each([
    ['text that is not a name', 'not a domain'],
    ['a URL', 'https://shop.example/'],
    ['a port', 'shop.example:25'],
    ['an IPv4 address', '192.0.2.1'],
    ['an IPv4 address in disguise', '0x7f.1'],
    ['an IPv6 address', '::1'],
    ['a top-level domain', 'com'],
    ['a public suffix', 'co.uk'],
    ['an empty label', 'shop..example'],
    ['an underscore', '_dmarc.shop.example'],
    ['a label of 64 characters', `${'a'.repeat(64)}.example`],
    ['a name of 253 characters', `${'a.'.repeat(122)}example.com`.slice(-253)],
    ['the shared domain', 'mail.test'],
    ['a subdomain of the shared domain', 'deep.mail.test'],
    ['the return-path domain', 'bounces.mail.test'],
    ['NUL', 'shop\u0000.example'],
  ])('rejects %s', async (_, domain_name) => {
    const { token } = await createOrganization(app.worker);
    const response = await app.call('/domains', { method: 'POST', token, body: { domain_name } });
    expectProblem(response, 'validation_error');
  });

  test('requires a credential that is not bound to an environment or inbox', async () => {
    const organization = await createOrganization(app.worker);
    const inbox = await createInbox(app.worker, organization);
    const bound = [
      { environmentId: inbox.environmentId },
      { environmentId: inbox.environmentId, inboxId: inbox.id },
    ];
    for (const binding of bound) {
      const { token } = await createKey(app.worker, { ...organization, ...binding });
      const response = await app.call('/domains', {
        method: 'POST',
        token,
        body: { domain_name: uniqueName() },
      });
      expectProblem(response, 'permission_denied');
    }
  });
});

describe('verification', () => {
  test('goes from missing to verified and is announced once', async () => {
    const organization = await createOrganization(app.worker);
    const domain = await add(organization);
    const missing = await verify(organization, domain);
    expect(missing).toMatchObject({ verification_status: 'pending', dkim_status: 'pending' });
    expect(missing.status_reason).toBe('Required records missing: ownership, spf, dkim.');
    publishRecords(server, domain.records);
    const verified = await verify(organization, domain);
    expect(verified).toMatchObject({
      verification_status: 'verified',
      spf_status: 'verified',
      dkim_status: 'verified',
      dmarc_status: 'verified',
      status_reason: null,
    });
    expect(new Set(Object.values(statusOf(verified)))).toEqual(new Set(['valid']));
    await verify(organization, domain);
    const events = await eventsOf(organization);
    expect(events.map(({ data, environmentId }) => ({ data, environmentId }))).toEqual([
      {
        environmentId: organization.productionEnvironmentId,
        data: {
          domain_id: domain.id,
          domain_name: domain.domain_name,
          verification_status: 'verified',
          spf_status: 'verified',
          dkim_status: 'verified',
          dmarc_status: 'verified',
          verified_at: expect.stringMatching(/Z$/),
        },
      },
    ]);
    expect(app.commands).toContainEqual({
      signal: { workflowId: `domain/${domain.id}/1`, signalName: 'checkNow', args: [] },
    });
  });

  test('is sent to subscribed endpoints of every environment, not to those limited to inboxes', async () => {
    const organization = await createOrganization(app.worker);
    const inbox = await createInbox(app.worker, organization);
    const subscribe = async (environmentId: string, inboxIds?: string[]) => {
      const response = await app.call('/webhooks/endpoints', {
        method: 'POST',
        token: organization.token,
        headers: { 'x-env-id': environmentId },
        body: { url: 'https://hooks.example/x', events: ['domain.verified'], inbox_ids: inboxIds },
      });
      expect(response.statusCode).toBe(201);
      return response.json<{ id: string }>().id;
    };
    const { productionEnvironmentId, sandboxEnvironmentId, organizationId } = organization;
    const notified = [await subscribe(productionEnvironmentId), await subscribe(sandboxEnvironmentId)];
    await subscribe(productionEnvironmentId, [inbox.id]);
    const domain = await add(organization);
    publishRecords(server, domain.records);
    await verify(organization, domain);
    const deliveries = await app.worker.db
      .selectFrom('webhook_deliveries')
      .select(columnsOf(WebhookDeliveryEntity))
      .where('org_id', '=', organizationId)
      .execute();
    expect(deliveries.map(({ endpointId }) => endpointId).toSorted()).toEqual(notified.toSorted());
  });

  test('needs neither MX nor DMARC', async () => {
    const organization = await createOrganization(app.worker);
    const domain = await add(organization);
    publishRecords(
      server,
      domain.records.filter(({ required }) => required),
    );
    const verified = await verify(organization, domain);
    expect(verified).toMatchObject({ verification_status: 'verified', dmarc_status: 'failed' });
    expect(statusOf(verified)).toMatchObject({ mx: 'missing', dmarc: 'missing' });
  });

  test('reports wrong values as invalid and shows what was found', async () => {
    const organization = await createOrganization(app.worker);
    const domain = await add(organization);
    const name = domain.domain_name;
    const dkim = domain.records.find(({ purpose }) => purpose === 'dkim')?.name ?? '';
    server.set(`_agent-email-verification.${name}`, 'TXT', 'agent-email-verification=another');
    server.set(name, 'TXT', 'v=spf1 include:other.example -all', 'unrelated');
    server.set(dkim, 'TXT', 'v=DKIM1; k=rsa; p=AAAA');
    server.set(name, 'MX', { exchange: 'mx.other.example', priority: 5 });
    server.set(`_dmarc.${name}`, 'TXT', 'v=DMARC1; p=whatever');
    const checked = await verify(organization, domain);
    expect(checked).toMatchObject({ verification_status: 'pending', spf_status: 'pending' });
    expect(checked.records.map(({ purpose, status, found }) => [purpose, status, found])).toEqual([
      ['ownership', 'invalid', 'agent-email-verification=another'],
      ['spf', 'invalid', 'v=spf1 include:other.example -all'],
      ['dkim', 'invalid', 'v=DKIM1; k=rsa; p=AAAA'],
      ['mx', 'invalid', '5 mx.other.example'],
      ['dmarc', 'invalid', 'v=DMARC1; p=whatever'],
    ]);
  });

  test.each(['SERVFAIL', 'REFUSED', 'silence'] as const)(
    'keeps earlier results on %s',
    async (failure) => {
      const organization = await createOrganization(app.worker);
      const domain = await add(organization);
      publishRecords(
        server,
        domain.records.filter(({ purpose }) => purpose !== 'ownership'),
      );
      await verify(organization, domain);
      for (const { name } of domain.records) server.fail(name, failure);
      const checked = await verify(organization, domain);
      expect(checked).toMatchObject({
        verification_status: 'pending',
        spf_status: 'verified',
        dkim_status: 'verified',
      });
      expect(statusOf(checked)).toMatchObject({
        ownership: 'missing',
        spf: 'valid',
        dkim: 'valid',
        mx: 'valid',
      });
      expect(checked.status_reason).toBe('No DNS answer for: ownership, spf, dkim.');
    },
    30_000,
  );

  test('reports NXDOMAIN as missing', async () => {
    const organization = await createOrganization(app.worker);
    const domain = await add(organization);
    publishRecords(
      server,
      domain.records.filter(({ purpose }) => purpose !== 'ownership'),
    );
    await verify(organization, domain);
    for (const { name } of domain.records) server.fail(name, 'NXDOMAIN');
    expect(await verify(organization, domain)).toMatchObject({
      spf_status: 'pending',
      dkim_status: 'pending',
    });
  });

  test('replays the response for a repeated Idempotency-Key', async () => {
    const organization = await createOrganization(app.worker);
    const domain = await add(organization);
    const call = () =>
      app.call(`/domains/${domain.id}/verify`, {
        method: 'POST',
        token: organization.token,
        headers: { 'idempotency-key': 'verify-once' },
      });
    const first = await call();
    publishRecords(server, domain.records);
    const again = await call();
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(again.body).toBe(first.body);
    expect(await eventsOf(organization)).toEqual([]);
  });

  test('of two organizations that claim one name, the first to verify gets it and the other fails with the reason', async () => {
    const [one, other] = [await createOrganization(app.worker), await createOrganization(app.worker)];
    const first = await add(one);
    const second = await add(other, { domain_name: first.domain_name });
    publishRecords(server, [...first.records, ...second.records]);
    const answers = await Promise.all([verify(one, first), verify(other, second)]);
    const statuses = answers.map(({ verification_status }) => verification_status);
    expect(statuses.toSorted()).toEqual(['failed', 'verified']);
    expect(answers[statuses.indexOf('failed')]?.status_reason).toContain('another organization');
    expect((await eventsOf(one)).length + (await eventsOf(other)).length).toBe(1);
    const [holder, loser] = statuses[0] === 'verified' ? [one, other] : [other, one];
    const [held, lost] = statuses[0] === 'verified' ? [first, second] : [second, first];
    await app.call(`/domains/${held.id}`, { method: 'DELETE', token: holder.token });
    expect(await verify(loser, lost)).toMatchObject({ verification_status: 'verified' });
  });
});

describe('DKIM key rotation', () => {
  test('activates the new key once its record is found', async () => {
    const organization = await createOrganization(app.worker);
    const domain = await add(organization);
    publishRecords(server, domain.records);
    await verify(organization, domain);
    const rotate = () =>
      app.call(`/domains/${domain.id}/rotate-dkim`, { method: 'POST', token: organization.token });
    const rotated = (await rotate()).json<DomainAnswer>();
    const keys = rotated.records.filter(({ purpose }) => purpose === 'dkim');
    expect(keys.map(({ required, status }) => [required, status])).toEqual([
      [true, 'valid'],
      [false, 'missing'],
    ]);
    expect(new Set(keys.map(({ name }) => name)).size).toBe(2);
    expectProblem(await rotate(), 'conflict');
    expect(await verify(organization, domain)).toMatchObject({
      verification_status: 'verified',
      dkim_status: 'verified',
    });
    publishRecords(server, rotated.records);
    const activated = await verify(organization, domain);
    expect(
      activated.records.filter(({ purpose }) => purpose === 'dkim').map(({ required }) => required),
    ).toEqual([false, true]);
    const log = await app.call(`/org/audit-log?resource_id=${domain.id}`, { token: organization.token });
    expect(log.json().data.map(({ action }: { action: string }) => action)).toEqual([
      'domain.dkim_activated',
      'domain.dkim_rotated',
      'domain.verified',
      'domain.created',
    ]);
    // The retired selector is free for the next key.
    const next = (await rotate()).json<DomainAnswer>().records.filter(({ purpose }) => purpose === 'dkim');
    expect(next.map(({ required, status }) => [required, status])).toEqual([
      [true, 'valid'],
      [false, 'missing'],
    ]);
    expect(await eventsOf(organization)).toHaveLength(1);
  });

  test('requires a verified domain', async () => {
    const organization = await createOrganization(app.worker);
    const { id } = await add(organization);
    expectProblem(
      await app.call(`/domains/${id}/rotate-dkim`, { method: 'POST', token: organization.token }),
      'conflict',
    );
  });
});

describe('inboxes on a domain', () => {
  async function verified() {
    const organization = await createOrganization(app.worker);
    const domain = await add(organization);
    publishRecords(server, domain.records);
    await verify(organization, domain);
    return { organization, domain };
  }
  const createInboxOn = ({ token }: TestOrganization, body: object) =>
    app.call('/inboxes', { method: 'POST', token, body });

  test('can be created on a verified domain by username or address, but not with a reserved name', async () => {
    const { organization, domain } = await verified();
    const name = domain.domain_name;
    const one = await createInboxOn(organization, { username: 'sales', domain: name });
    expect(one.json()).toMatchObject({ email: `sales@${name}` });
    const two = await createInboxOn(organization, { email: `Ada@${name.toUpperCase()}` });
    expect(two.json()).toMatchObject({ email: `ada@${name}` });
    expectProblem(
      await createInboxOn(organization, { username: 'postmaster', domain: name }),
      'validation_error',
    );
  });

  test('cannot be created on a pending, foreign or unknown domain', async () => {
    const { domain } = await verified();
    const organization = await createOrganization(app.worker);
    const pending = await add(organization);
    for (const name of [pending.domain_name, domain.domain_name, 'nobody.example', 'no domain'])
      expectProblem(
        await createInboxOn(organization, { username: 'ada', domain: name }),
        'domain_not_verified',
      );
  });

  test('prevent the deletion of their domain; once it is deleted, its addresses are free', async () => {
    const { organization, domain } = await verified();
    const inbox = (await createInboxOn(organization, { username: 'ada', domain: domain.domain_name })).json();
    const remove = () => app.call(`/domains/${domain.id}`, { method: 'DELETE', token: organization.token });
    expectProblem(await remove(), 'conflict');
    await app.call(`/inboxes/${inbox.id}`, { method: 'DELETE', token: organization.token });
    expect((await remove()).statusCode).toBe(204);
    expectProblem(await app.call(`/domains/${domain.id}`, { token: organization.token }), 'not_found');
    const next = await createOrganization(app.worker);
    const claim = await add(next, { domain_name: domain.domain_name });
    publishRecords(server, claim.records);
    await verify(next, claim);
    expect((await createInboxOn(next, { username: 'ada', domain: domain.domain_name })).statusCode).toBe(201);
  });

  test('cannot send while their domain is not verified', async () => {
    const { organization, domain } = await verified();
    const inbox = (await createInboxOn(organization, { username: 'ada', domain: domain.domain_name })).json();
    const send = () =>
      app.call(`/inboxes/${inbox.id}/messages`, {
        method: 'POST',
        token: organization.token,
        body: { to: [{ email: 'bob@people.example' }], subject: 'Hi', text_body: 'Hello' },
      });
    expect((await send()).statusCode).toBe(201);
    await query(app.worker, sql`update domains set verification_status = 'failed' where id = ${domain.id}`);
    expect(expectProblem(await send(), 'domain_not_verified')).toMatchObject({
      rejection_reason: 'account_paused',
    });
  });

  test('stop receiving once another organization has verified their domain', async () => {
    const { organization, domain } = await verified();
    const email = `ada@${domain.domain_name}`;
    await createInboxOn(organization, { email });
    const { outbox } = recordingOutbox();
    const receipts = createTestReceiptService({ database: app.worker, outbox });
    const resolve = () => receipts.resolve(email, 'bob@people.example');
    expect(await resolve()).toMatchObject({ kind: 'mail' });
    await query(app.worker, sql`update domains set verification_status = 'failed' where id = ${domain.id}`);
    expect(await resolve()).toMatchObject({ kind: 'mail' });
    const next = await createOrganization(app.worker);
    const claim = await add(next, { domain_name: domain.domain_name });
    publishRecords(server, claim.records);
    await verify(next, claim);
    expect(await resolve()).toBe('unknown');
  });

  test('a key bound to an inbox sees only the domain of that inbox', async () => {
    const { organization, domain } = await verified();
    await add(organization);
    const inbox = (await createInboxOn(organization, { username: 'ada', domain: domain.domain_name })).json();
    const { token } = await createKey(app.worker, {
      ...organization,
      environmentId: inbox.env_id,
      inboxId: inbox.id,
    });
    const list = await app.call('/domains', { token });
    expect(list.json().data.map(({ id }: DomainAnswer) => id)).toEqual([domain.id]);
  });
});

test('paginates the list and returns a zone file with every record', async () => {
  const organization = await createOrganization(app.worker);
  const domains = [await add(organization), await add(organization), await add(organization)];
  const page = await app.call('/domains?limit=2', { token: organization.token });
  expect(page.json()).toMatchObject({
    has_more: true,
    data: [{ id: domains[2]?.id }, { id: domains[1]?.id }],
  });
  const zone = await app.call(`/domains/${domains[0]?.id}/zone-file`, { token: organization.token });
  expect(zone.headers['content-type']).toBe('text/plain; charset=utf-8');
  const records = domains[0]?.records ?? [];
  expect(records.length).toBeGreaterThan(0);
  for (const { name, type } of records) expect(zone.body).toContain(`${name}. 3600 IN ${type} `);
  expect(zone.body).toMatch(/"v=DKIM1; k=rsa; p=[^"]+" "[^"]+"/);
});
