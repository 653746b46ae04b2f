import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { formatZoneFile, quoteText } from '../../domain/domains/zone-file.ts';

/** Parses quoted strings of a zone file (RFC 1035 section 5.1). */
function readStrings(line: string): Buffer[] {
  const strings = line.match(/"(?:[^"\\]|\\\d{3}|\\[^\d])*"/g) ?? [];
  expect(strings.join(' ')).toBe(line);
  return strings.map((string) => {
    const octets: number[] = [];
    for (const [, octet, character, plain] of string.slice(1, -1).matchAll(/\\(\d{3})|\\(.)|(.)/g))
      octets.push(octet === undefined ? (character ?? plain ?? '').charCodeAt(0) : Number(octet));
    return Buffer.from(octets);
  });
}

test('any text survives quoting, in strings of at most 255 octets', () => {
  const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 1200 }), fc.string({ maxLength: 1200 }));
  fc.assert(
    fc.property(text, (input) => {
      const line = quoteText(input);
      expect(line).toMatch(/^[\x20-\x7e]*$/);
      const strings = readStrings(line);
      expect(Buffer.concat(strings)).toEqual(Buffer.from(input));
      expect(Math.max(...strings.map(({ length }) => length))).toBeLessThanOrEqual(255);
    }),
  );
});

test('names are fully qualified, hosts end in a dot, semicolons are quoted', () => {
  const txt = { type: 'TXT' as const, priority: null, ttl: 3600, required: true };
  expect(
    formatZoneFile('shop.example', [
      { ...txt, purpose: 'dkim', name: 's._domainkey.shop.example', value: 'v=DKIM1; p="\\' },
      {
        ...txt,
        purpose: 'mx',
        type: 'MX',
        name: 'shop.example',
        value: 'mx.mail.test',
        priority: 10,
        required: false,
      },
    ]),
  ).toBe(
    [
      '; Records of shop.example. Merge the SPF record with an existing one: a domain may have only one.',
      '; dkim',
      String.raw`s._domainkey.shop.example. 3600 IN TXT "v=DKIM1; p=\"\\"`,
      '; mx, not required',
      'shop.example. 3600 IN MX 10 mx.mail.test.',
      '',
    ].join('\n'),
  );
});
