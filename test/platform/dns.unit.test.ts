import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createDnsLookup, type DnsLookup } from '../../platform/dns.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';

let server: DnsServer;
let dns: DnsLookup;
let impatient: DnsLookup;
beforeAll(async () => {
  server = await startDnsServer();
  const settings = { DNS_SERVERS: server.address, DNS_TRIES: 2 };
  dns = createDnsLookup({ ...settings, DNS_TIMEOUT_MS: 10_000 });
  impatient = createDnsLookup({ ...settings, DNS_TIMEOUT_MS: 100 });
});
afterAll(() => server.stop());

test('joins the strings of a TXT record and keeps records separate', async () => {
  server.set('several.example', 'TXT', ['v=DKIM1; p=AB', 'CD'], 'second');
  expect(await dns.txt('several.example')).toEqual({ kind: 'found', records: ['v=DKIM1; p=ABCD', 'second'] });
});

test('follows a CNAME and uses TCP for truncated responses', async () => {
  server.set('alias.example', 'CNAME', 'long.example');
  server.set('long.example', 'TXT', ...Array.from({ length: 60 }, (_, at) => `${at}`.padEnd(200, 'x')));
  expect(await dns.txt('alias.example')).toEqual({ kind: 'found', records: expect.any(Array) });
  // Over UDP a slow machine may ask once more before the answer arrives.
  expect(server.questionsOverTcp).toContain('TXT alias.example');
});

test('limits the number and the length of records', async () => {
  const long = Array.from({ length: 20 }, () => 'x'.repeat(250));
  server.set('huge.example', 'TXT', long, ...Array.from({ length: 60 }, (_, at) => `record ${at}`));
  const answer = await dns.txt('huge.example');
  const records = answer.kind === 'found' ? answer.records : [];
  expect(records).toHaveLength(50);
  expect(Math.max(...records.map(({ length }) => length))).toBe(4096);
});

test('distinguishes a negative answer from no answer', async () => {
  server.set('empty.example', 'A', '192.0.2.1');
  server.fail('broken.example', 'SERVFAIL');
  server.fail('refused.example', 'REFUSED');
  server.fail('silent.example', 'silence');
  expect(await dns.txt('absent.example')).toEqual({ kind: 'none' });
  expect(await dns.mx('empty.example')).toEqual({ kind: 'none' });
  expect(await dns.txt('broken.example')).toEqual({ kind: 'unknown', error: 'ESERVFAIL' });
  expect(await dns.txt('refused.example')).toEqual({ kind: 'unknown', error: 'EREFUSED' });
  expect(await impatient.txt('silent.example')).toEqual({ kind: 'unknown', error: 'ETIMEOUT' });
});

test('does not cache answers', async () => {
  server.set('changing.example', 'MX', { exchange: 'a.example', priority: 10 });
  await dns.mx('changing.example');
  server.set('changing.example', 'MX', { exchange: 'b.example', priority: 20 });
  expect(await dns.mx('changing.example')).toEqual({
    kind: 'found',
    records: [{ exchange: 'b.example', priority: 20 }],
  });
});

test('rejects invalid server addresses on creation', () => {
  expect(() => createDnsLookup({ DNS_SERVERS: 'dns.example', DNS_TIMEOUT_MS: 100, DNS_TRIES: 1 })).toThrow();
});
