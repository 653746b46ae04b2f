import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { createResolver } from '../../platform/dns.ts';
import { apiClient, type Call } from '../support/client.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { type PublishedRecord, publishRecords } from '../support/domains.ts';
import { eventually } from '../support/eventually.ts';
import { type IsolatedService, startIsolatedService } from '../support/isolated-service.ts';
import { type SinkMessage, SmtpSink } from '../support/smtp-sink.ts';

jest.setTimeout(180_000);
const TIMEOUT_MS = 60_000;

let server: DnsServer;
let sink: SmtpSink;
let service: IsolatedService;
let call: Call;
beforeAll(async () => {
  server = await startDnsServer();
  sink = new SmtpSink();
  service = await startIsolatedService({
    DNS_SERVERS: server.address,
    SMTP_RELAY_PORT: String(await sink.start()),
  });
  call = apiClient({ base_url: service.baseUrl }, service.apiKey);
});
afterAll(async () => {
  await service?.stop();
  await sink?.stop();
  await server?.stop();
});

const recordsOf = (body: object) => (body as { records: PublishedRecord[] }).records;

/** Sends from the inbox. Returns the message that the relay received. */
async function send(inboxId: string, subject: string): Promise<SinkMessage> {
  const { status } = await call('POST', `/inboxes/${inboxId}/messages`, {
    to: [{ email: 'ada@people.example' }],
    subject,
    text_body: 'Grüße.\n\n',
    html_body: '<p>Grüße.</p>',
  });
  expect(status).toBe(201);
  const arrived = () => sink.mails.find(({ raw }) => raw.includes(`Subject: ${subject}`));
  await eventually(() => expect(arrived()).toBeDefined(), TIMEOUT_MS);
  return arrived() as SinkMessage;
}

async function signaturesOf({ raw }: SinkMessage) {
  const resolver = createResolver({ DNS_SERVERS: server.address, DNS_TIMEOUT_MS: 1000, DNS_TRIES: 2 });
  const { results } = await dkimVerify(raw, {
    resolver: (name: string, type: string) => resolver.resolve(name, type) as never,
  });
  return results.map(({ signingDomain, selector, status }) => ({
    signingDomain,
    selector,
    result: status.result,
  }));
}

async function runEnded(workflowId: string): Promise<unknown> {
  const temporal = await service.connectToTemporal();
  const result = await temporal.workflow.getHandle(workflowId).result();
  await temporal.connection.close();
  return result;
}

test('a custom domain is verified, signs mail and rotates its key', async () => {
  const { status, body: domain } = await call('POST', '/domains', { domain_name: 'Shop.example' });
  expect(status).toBe(201);
  expect((await call('POST', '/inboxes', { username: 'ada', domain: 'shop.example' })).body.code).toBe(
    'domain_not_verified',
  );
  publishRecords(server, recordsOf(domain));
  const verified = await call('POST', `/domains/${domain.id}/verify`);
  expect(verified.body).toMatchObject({ verification_status: 'verified' });
  expect(await runEnded(`domain/${domain.id}/1`)).toBe('verified');

  const inbox = await call('POST', '/inboxes', { username: 'ada', domain: 'shop.example' });
  expect(inbox.body.email).toBe('ada@shop.example');
  const [first] = recordsOf(domain).filter(({ purpose }) => purpose === 'dkim');
  const selectorOf = (record?: PublishedRecord) => record?.name.split('.')[0];
  expect(await signaturesOf(await send(inbox.body.id, 'Signed'))).toEqual([
    { signingDomain: 'shop.example', selector: selectorOf(first), result: 'pass' },
  ]);

  const rotated = await call('POST', `/domains/${domain.id}/rotate-dkim`);
  const next = recordsOf(rotated.body).filter(({ purpose }) => purpose === 'dkim')[1];
  expect(await signaturesOf(await send(inbox.body.id, 'Still the old key'))).toMatchObject([
    { selector: selectorOf(first), result: 'pass' },
  ]);
  publishRecords(server, recordsOf(rotated.body));
  await call('POST', `/domains/${domain.id}/verify`);
  expect(await runEnded(`domain/${domain.id}/2`)).toBe('verified');
  expect(await signaturesOf(await send(inbox.body.id, 'The new key'))).toMatchObject([
    { selector: selectorOf(next), result: 'pass' },
  ]);
});

test('mail from the shared domain is signed with the configured key', async () => {
  const {
    DKIM_SHARED_PRIVATE_KEY_FILE: file = '',
    DKIM_SHARED_SELECTOR: selector,
    MAIL_DOMAIN,
  } = service.config;
  const key = createPublicKey(readFileSync(file)).export({ type: 'spki', format: 'der' }).toString('base64');
  const record = `v=DKIM1; k=rsa; p=${key}`;
  server.set(`${selector}._domainkey.${MAIL_DOMAIN}`, 'TXT', record.match(/.{1,255}/g) ?? []);
  const inbox = await call('POST', '/inboxes', {});
  expect(await signaturesOf(await send(inbox.body.id, 'Shared'))).toEqual([
    { signingDomain: MAIL_DOMAIN, selector, result: 'pass' },
  ]);
});

test('deleting an unverified domain ends its run', async () => {
  const { body } = await call('POST', '/domains', { domain_name: 'gone.example' });
  expect((await call('DELETE', `/domains/${body.id}`)).status).toBe(204);
  expect(await runEnded(`domain/${body.id}/1`)).toBe('deleted');
});
