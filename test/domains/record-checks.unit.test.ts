import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  isDkimRecord,
  isDmarcRecord,
  isMxRecord,
  isOwnershipRecord,
  isSpfRecord,
  MAX_FOUND_LENGTH,
} from '../../domain/domains/record-checks.ts';

const spf = isSpfRecord('include:bounces.mail.test');
const dkim = isDkimRecord('MIIB+/aA==');

describe('SPF', () => {
  test.each([
    [['v=spf1 include:bounces.mail.test ~all']],
    [['V=SPF1   +Include:BOUNCES.mail.test.  -ALL']],
    [['unrelated', ' v=spf1 a mx include:other.example include:bounces.mail.test ?all ']],
    [['v=spf1 include:bounces.mail.test']],
    [['v=spf1 include:bounces.mail.test redirect=other.example']],
  ])('valid: %j', (published) => {
    expect(spf(published).status).toBe('valid');
  });
  test.each([
    ['another include', ['v=spf1 include:other.example ~all']],
    ['two records', ['v=spf1 include:bounces.mail.test ~all', 'v=spf1 -all']],
    ['after all', ['v=spf1 -all include:bounces.mail.test']],
    ['negative qualifier', ['v=spf1 -include:bounces.mail.test ~all']],
    ['a longer name', ['v=spf1 include:bounces.mail.test.evil.example ~all']],
    ['missing space', ['v=spf1include:bounces.mail.test']],
  ])('not valid: %s', (_, published) => {
    expect(spf(published).status).not.toBe('valid');
  });
  test('is missing if there are only other texts', () => {
    expect(spf(['google-site-verification=x', 'v=spf10 a'])).toEqual({ status: 'missing', found: null });
  });
});

describe('DKIM', () => {
  test.each([
    ['v=DKIM1; k=rsa; p=MIIB+/aA=='],
    ['p=MIIB+/aA=='],
    [' v = DKIM1 ;k=RSA;\tp=MIIB +/\taA== ; '],
    ['v=DKIM1; h=sha1:sha256; s=email; t=s; n=note; p=MIIB+/aA=='],
  ])('valid: %s', (record) => {
    expect(dkim([record]).status).toBe('valid');
  });
  test.each([
    ['another key', ['v=DKIM1; k=rsa; p=MIIB+/aB==']],
    ['the key in another case', ['v=DKIM1; k=rsa; p=miib+/aa==']],
    ['a revoked key', ['v=DKIM1; k=rsa; p=']],
    ['another key type', ['v=DKIM1; k=ed25519; p=MIIB+/aA==']],
    ['another version', ['v=DKIM2; p=MIIB+/aA==']],
    ['a key in testing mode', ['v=DKIM1; t=y; p=MIIB+/aA==']],
    ['SHA-1 only', ['v=DKIM1; h=sha1; p=MIIB+/aA==']],
    ['another service type', ['v=DKIM1; s=tlsrpt; p=MIIB+/aA==']],
    ['a duplicate tag', ['v=DKIM1; p=AAAA; p=MIIB+/aA==']],
    ['no tags', ['MIIB+/aA==']],
    ['two records', ['v=DKIM1; p=MIIB+/aA==', 'v=DKIM1; p=AAAA']],
  ])('invalid: %s', (_, published) => {
    expect(dkim(published)).toEqual({ status: 'invalid', found: published.join('\n') });
  });
});

describe('DMARC', () => {
  test.each([
    ['v=DMARC1; p=none', 'valid'],
    ['v=DMARC1;p=Reject; rua=mailto:a@b.example', 'valid'],
    ['v=DMARC1; rua=mailto:a@b.example', 'invalid'],
    ['v=DMARC1; p=maybe', 'invalid'],
    ['p=none; v=DMARC1', 'missing'],
  ])('%s is %s', (record, status) => {
    expect(isDmarcRecord([record]).status).toBe(status);
  });
});

test('MX: accepts the host among others, in any case, with or without a trailing dot', () => {
  const mx = isMxRecord('mx.mail.test');
  expect(mx(['5 other.example', '10 MX.mail.test.']).status).toBe('valid');
  expect(mx(['10 mx.mail.test.evil.example']).status).toBe('invalid');
  expect(mx([]).status).toBe('missing');
});

test('ownership: accepts the exact token among several texts', () => {
  const owner = isOwnershipRecord('agent-email-verification=abc');
  expect(owner(['agent-email-verification=other', ' agent-email-verification=abc ']).status).toBe('valid');
  expect(owner(['agent-email-verification=ABC']).status).toBe('invalid');
});

test('any published text is evaluated quickly and shown truncated, without control characters', () => {
  const published = fc.array(
    fc.oneof(fc.string({ unit: 'binary', maxLength: 4096 }), fc.constant('v=DMARC1;'.repeat(400))),
  );
  fc.assert(
    fc.property(published, (texts) => {
      for (const evaluate of [spf, dkim, isDmarcRecord, isMxRecord('mx.mail.test'), isOwnershipRecord('x')]) {
        const { found } = evaluate(texts);
        expect(found?.length ?? 0).toBeLessThanOrEqual(MAX_FOUND_LENGTH);
        expect((found ?? '').replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
        expect((found ?? '').isWellFormed()).toBe(true);
      }
    }),
  );
});
