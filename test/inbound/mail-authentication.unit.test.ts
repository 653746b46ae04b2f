import { generateKeyPairSync } from 'node:crypto';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import nodemailer from 'nodemailer';
import { computeFingerprint } from '../../domain/inbound/fingerprint.ts';
import { createAuthenticator, isPublicAddress } from '../../domain/inbound/mail-authentication.ts';
import { createResolver } from '../../platform/dns.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { expectWithin } from '../support/expect-within.ts';
import { TIME_FACTOR } from '../support/time-factor.ts';

const CLIENT = '93.184.215.14';
const { privateKey, publicKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'der' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});

let dns: DnsServer;
beforeAll(async () => {
  dns = await startDnsServer();
  dns.set('sender.test', 'TXT', `v=spf1 ip4:${CLIENT} -all`);
  dns.set('_dmarc.sender.test', 'TXT', 'v=DMARC1; p=reject');
  // A string of a TXT record has at most 255 octets (RFC 1035 section 3.3.14).
  dns.set(
    'key._domainkey.sender.test',
    'TXT',
    `v=DKIM1; k=rsa; p=${publicKey.toString('base64')}`.match(/.{1,255}/g) ?? [],
  );
  dns.set('plain.test', 'TXT', 'v=spf1 -all');
});
afterAll(() => dns.stop());

async function build({ from, signed }: { from: string; signed: boolean }): Promise<Buffer> {
  const composer = nodemailer.createTransport({ streamTransport: true, buffer: true, newline: 'windows' });
  const { message } = await composer.sendMail({
    from,
    to: 'agent@mail.test',
    subject: 'Signed',
    text: 'Hello\r\n',
    ...(signed ? { dkim: { domainName: 'sender.test', keySelector: 'key', privateKey } } : {}),
  });
  return message as Buffer;
}

async function check(
  bytes: Buffer,
  facts: { clientIp?: string; mailFrom?: string } = {},
  options: { timeoutMs?: number } = {},
) {
  const resolver = createResolver({
    DNS_SERVERS: dns.address,
    DNS_TIMEOUT_MS: 300 * TIME_FACTOR,
    DNS_TRIES: 1,
  });
  const authenticate = createAuthenticator({
    resolve: (name, type) => resolver.resolve(name, type),
    timeoutMs: options.timeoutMs ?? 4_000 * TIME_FACTOR,
  });
  const { isSigned } = await computeFingerprint(Readable.from([bytes]));
  return authenticate({
    raw: { sizeBytes: bytes.length, open: async () => Readable.from([bytes]) },
    isSigned,
    clientIp: facts.clientIp ?? CLIENT,
    helo: 'mx.sender.test',
    mailFrom: facts.mailFrom ?? 'ada@sender.test',
  });
}

describe('a received message', () => {
  test('that is signed and sent by a host of its domain passes all checks', async () => {
    const mail = await build({ from: 'ada@sender.test', signed: true });
    expect(await check(mail)).toEqual({
      authorDomain: 'sender.test',
      signers: ['sender.test'],
      spf: 'pass',
      dkim: 'pass',
      dmarc: 'pass',
      arc: 'none',
      policy: 'reject',
    });
  });

  test('that is signed and sent by another host passes by its signature', async () => {
    const mail = await build({ from: 'ada@sender.test', signed: true });
    expect(await check(mail, { clientIp: '8.8.8.8' })).toMatchObject({
      spf: 'fail',
      dkim: 'pass',
      dmarc: 'pass',
    });
  });

  test('that was changed in transit fails', async () => {
    const mail = await build({ from: 'ada@sender.test', signed: true });
    const changed = Buffer.from(mail.toString().replace('Hello', 'Pay me'));
    expect(await check(changed, { clientIp: '8.8.8.8' })).toMatchObject({
      dmarc: 'fail',
      policy: 'reject',
    });
  });

  test('with a forged domain fails', async () => {
    const mail = await build({ from: 'ada@sender.test', signed: false });
    expect(await check(mail, { clientIp: '8.8.8.8', mailFrom: 'eve@unknown.test' })).toMatchObject({
      spf: 'none',
      dkim: 'none',
      dmarc: 'fail',
      policy: 'reject',
    });
  });

  test('from a domain without DMARC has the result none', async () => {
    const mail = await build({ from: 'ada@plain.test', signed: false });
    expect(await check(mail, { mailFrom: 'ada@plain.test' })).toMatchObject({
      spf: 'fail',
      dkim: 'none',
      dmarc: 'none',
    });
  });

  test('with the null sender is checked by its HELO name', async () => {
    dns.set('mx.sender.test', 'TXT', `v=spf1 ip4:${CLIENT} -all`);
    const mail = await build({ from: 'ada@sender.test', signed: false });
    expect(await check(mail, { mailFrom: '' })).toMatchObject({ spf: 'pass' });
  });

  test.each(['127.0.0.1', '::1', '10.1.2.3', '192.168.0.1', 'fd00::1', '192.0.2.1', 'no address'])(
    'from the private address %s needs no lookups and never fails',
    async (clientIp) => {
      const asked = dns.questions.length;
      const mail = await build({ from: 'ada@sender.test', signed: false });
      expect(await check(mail, { clientIp })).toMatchObject({ spf: 'none', dkim: 'none', dmarc: 'none' });
      expect(dns.questions).toHaveLength(asked);
      expect(isPublicAddress(clientIp)).toBe(false);
    },
  );

  test('does not count as forged if the key lookup fails', async () => {
    const mail = await build({ from: 'ada@sender.test', signed: true });
    dns.fail('key._domainkey.sender.test', 'SERVFAIL');
    const result = await check(mail, { clientIp: '8.8.8.8' }).finally(() =>
      dns.fail('key._domainkey.sender.test', null),
    );
    expect(result).toMatchObject({ spf: 'fail', dkim: 'temperror', dmarc: 'temperror' });
  });

  test('that is signed and sent from a private address passes by its signature', async () => {
    const mail = await build({ from: 'ada@sender.test', signed: true });
    expect(await check(mail, { clientIp: '10.1.2.3' })).toMatchObject({
      spf: 'none',
      dkim: 'pass',
      dmarc: 'pass',
    });
  });

  test.each(['SERVFAIL', 'REFUSED', 'silence'] as const)(
    'gets temperror in bounded time while DNS fails with %s',
    async (failure) => {
      const mail = await build({ from: 'ada@sender.test', signed: true });
      dns.fail('*', failure);
      const result = await expectWithin(2_500, () => check(mail, {}, { timeoutMs: 1_000 })).finally(() =>
        dns.fail('*', null),
      );
      expect(result).toMatchObject({ spf: 'temperror', dkim: 'temperror', dmarc: 'temperror' });
    },
  );

  test.each([
    { what: 'two From fields', raw: 'From: a@sender.test\r\nFrom: b@plain.test\r\n\r\nx' },
    { what: 'no From field', raw: 'Subject: x\r\n\r\nx' },
    { what: 'no content', raw: '' },
    {
      what: '2,000 signatures',
      raw: `${'DKIM-Signature: v=1; d=sender.test; s=key; b=x\r\n'.repeat(2_000)}\r\nx`,
    },
    { what: 'a signature of 900,000 characters', raw: `DKIM-Signature: ${'a=b; '.repeat(180_000)}\r\n\r\nx` },
    {
      what: 'octets without a charset',
      raw: Buffer.from('From: \xff\xfe@\xe4\r\nSubject: \0\r\n\r\n\xff', 'latin1'),
    },
  ])('with $what gets a result', async ({ raw }) => {
    const result = await expectWithin(5_000, () => check(Buffer.from(raw)));
    const { authorDomain, unread: _none, signers: _signers, ...results } = result;
    expect(authorDomain === undefined || !authorDomain.includes('@')).toBe(true);
    expect(Object.values(results).every((value) => value === null || /^[a-z]+$/.test(value))).toBe(true);
  });
});
