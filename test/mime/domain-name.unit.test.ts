import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { getDomain } from 'tldts';
import { isWithinDomain, MAX_DOMAIN_LENGTH, parseDomainName } from '../../domain/mime/domain-name.ts';

const label = fc
  .stringMatching(/^[a-z0-9](?:[a-z0-9-]{0,20}[a-z0-9])?$/)
  .filter((text) => !text.startsWith('xn--'));
const name = fc
  .tuple(fc.array(label, { minLength: 1, maxLength: 4 }), fc.constantFrom('com', 'example', 'museum', 'de'))
  .map(([labels, top]) => [...labels, top].join('.'))
  // Excludes public suffixes such as `uk.com`.
  .filter((text) => getDomain(text, { allowPrivateDomains: true }) !== null);

describe('parseDomainName', () => {
  test.each([
    ['Shop.Example.COM', 'shop.example.com'],
    ['shop.example.', 'shop.example'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['BÜCHER。example', 'xn--bcher-kva.example'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['ｓｈｏｐ.example', 'shop.example'],
    ['faß.example', 'xn--fa-hia.example'],
    ['例え.テスト', 'xn--r8jz45g.xn--zckzah'],
    ['1and1.com', '1and1.com'],
  ])('parses %s: %s', (given, expected) => {
    expect(parseDomainName(given)).toEqual({ name: expected });
  });

  test.each([
    ['', 'malformed'],
    ['.', 'malformed'],
    ['shop..example', 'malformed'],
    ['shop.example..', 'malformed'],
    ['-shop.example', 'malformed'],
    ['shop-.example', 'malformed'],
    ['shop_1.example', 'malformed'],
    ['shop example.com', 'malformed'],
    ['shop.example/path', 'malformed'],
    ['ex%61mple.com', 'malformed'],
    ['user@shop.example', 'malformed'],
    ['*.shop.example', 'malformed'],
    ['shop.example.1', 'malformed'],
    ['xn--a.example', 'malformed'],
    ['127.0.0.1', 'address'],
    ['１２７.０.０.１', 'address'],
    ['0x7f000001', 'address'],
    ['2130706433', 'address'],
    ['::ffff:127.0.0.1', 'address'],
    ['localhost', 'public_suffix'],
    ['printer.local', 'public_suffix'],
    ['abc.onion', 'public_suffix'],
    ['com', 'public_suffix'],
    ['CO.UK', 'public_suffix'],
    ['github.io', 'public_suffix'],
    [`${'a.'.repeat(120)}example`, 'too_long'],
  ])('parses %s: %s', (given, problem) => {
    expect(parseDomainName(given)).toEqual({ problem });
  });

  test('ignores case and a trailing dot, and is idempotent', () => {
    fc.assert(
      fc.property(name, (given) => {
        const parsed = parseDomainName(given);
        expect(parsed).toEqual({ name: given });
        expect(parseDomainName(given.toUpperCase())).toEqual(parsed);
        expect(parseDomainName(`${given}.`)).toEqual(parsed);
      }),
    );
  });

  test('rejects any text or returns a valid DNS name', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.webUrl(), fc.ipV4(), fc.ipV6(), fc.domain());
    fc.assert(
      fc.property(text, (given) => {
        const parsed = parseDomainName(given);
        if ('problem' in parsed) return;
        expect(parsed.name).toMatch(
          /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]*[a-z-][a-z0-9-]*$/,
        );
        expect(parsed.name.length).toBeLessThanOrEqual(MAX_DOMAIN_LENGTH);
        expect(parseDomainName(parsed.name)).toEqual(parsed);
      }),
      { numRuns: 1000 },
    );
  });
});

test('compares whole labels', () => {
  expect(isWithinDomain('mail.example', 'Mail.Example')).toBe(true);
  expect(isWithinDomain('a.mail.example', 'mail.example')).toBe(true);
  expect(isWithinDomain('notmail.example', 'mail.example')).toBe(false);
});
