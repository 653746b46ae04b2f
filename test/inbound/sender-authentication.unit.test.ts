import { expect, test } from '@jest/globals';
import type { Authentication } from '../../domain/inbound/mail-authentication.ts';
import { checkSender } from '../../domain/inbound/sender-authentication.ts';

const NONE: Authentication = { spf: 'none', dkim: 'none', dmarc: 'none', arc: 'none', policy: null };

test.each<[string, Partial<Authentication>, string]>([
  ['DMARC passes for its author', { dmarc: 'pass', authorDomain: 'People.example' }, 'authenticated'],
  ['DMARC passes for a subdomain', { dmarc: 'pass', authorDomain: 'mail.people.example' }, 'authenticated'],
  [
    'the domain has signed it',
    { dkim: 'pass', signers: ['other.example', 'people.example'] },
    'authenticated',
  ],
  ['a subdomain has signed it', { dkim: 'pass', signers: ['m.people.example'] }, 'authenticated'],
  [
    'the domain has signed it, and DNS failed otherwise',
    { spf: 'temperror', dmarc: 'temperror', dkim: 'pass', signers: ['people.example'] },
    'authenticated',
  ],
  ['DMARC passes for another author', { dmarc: 'pass', authorDomain: 'evil.example' }, 'unauthenticated'],
  [
    'DMARC passes for a domain that only ends alike',
    { dmarc: 'pass', authorDomain: 'notpeople.example' },
    'unauthenticated',
  ],
  ['DMARC passes for the parent domain', { dmarc: 'pass', authorDomain: 'example' }, 'unauthenticated'],
  ['DMARC passes for an unknown author', { dmarc: 'pass' }, 'unauthenticated'],
  ['another domain has signed it', { dkim: 'pass', signers: ['evil.example'] }, 'unauthenticated'],
  ['SPF alone passes', { spf: 'pass' }, 'unauthenticated'],
  ['DMARC fails', { dmarc: 'fail', authorDomain: 'people.example' }, 'unauthenticated'],
  ['nothing is known', {}, 'unauthenticated'],
  ['DNS fails for DMARC', { dmarc: 'temperror' }, 'undetermined'],
  ['DNS fails for the signature', { dkim: 'temperror', dmarc: 'fail' }, 'undetermined'],
])('mail is checked as of people.example: %s', (_name, results, expected) => {
  expect(checkSender({ ...NONE, ...results }, 'people.example')).toBe(expected);
});
