import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { fingerprintOf, MetadataRefusal, parseIdpMetadata } from '../../domain/sso/saml/idp-metadata.ts';

const certificate = (name: string) =>
  readFileSync(new URL(`../fixtures/saml/${name}.pem`, import.meta.url), 'utf8');
const [RSA, LONGER, WEAK, ELLIPTIC] = ['rsa', 'rsa-longer', 'rsa-1024', 'ec'].map(certificate) as [
  string,
  string,
  string,
  string,
];
const base64 = (pem: string) => pem.replace(/-----[^-]+-----|\s/g, '');
const key = (pem: string, use = ' use="signing"') =>
  `<md:KeyDescriptor${use}><ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data><ds:X509Certificate>${base64(pem)}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>`;
const service = (location: string, binding = 'HTTP-Redirect') =>
  `<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:${binding}" Location="${location}"/>`;
const SSO_URL = 'https://idp.example.test/sso';

interface Parts {
  entityId: string;
  keys: string;
  services: string;
  protocols: string;
  role: string;
}
const entity = ({
  entityId = 'https://idp.example.test/metadata',
  keys = key(RSA),
  services = service(SSO_URL),
  protocols = ' protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"',
  role = 'IDPSSODescriptor',
}: Partial<Parts> = {}) =>
  `<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="${entityId}"><md:${role}${protocols}>${keys}${services}</md:${role}></md:EntityDescriptor>`;
const federation = (...entities: string[]) =>
  `<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata">${entities.join('')}</md:EntitiesDescriptor>`;
const parse = (xml: string) => parseIdpMetadata(xml, (url) => url.startsWith('https:'));
const pem = (text: string) => new X509Certificate(text).toString();

test('metadata names the identity provider, its address and its certificates', () => {
  expect(parse(entity())).toEqual({
    entityId: 'https://idp.example.test/metadata',
    ssoUrl: SSO_URL,
    certificates: [pem(RSA)],
    certificateExpiresAt: new Date(new X509Certificate(RSA).validTo),
  });
});

describe('metadata', () => {
  test.each([
    [
      'of one identity provider within a federation',
      federation(entity(), entity({ role: 'SPSSODescriptor' })),
    ],
    ['that does not say its protocol', entity({ protocols: '' })],
    [
      'of several protocols',
      entity({
        protocols:
          ' protocolSupportEnumeration="urn:oasis:names:tc:SAML:1.1:protocol urn:oasis:names:tc:SAML:2.0:protocol"',
      }),
    ],
    [
      'with another binding first',
      entity({ services: service('https://idp.example.test/post', 'HTTP-POST') + service(SSO_URL) }),
    ],
    ['with an elliptic key beside', entity({ keys: key(ELLIPTIC) + key(RSA) })],
    ['with an encryption key beside', entity({ keys: key(LONGER, ' use="encryption"') + key(RSA) })],
    ['with a key whose use it does not say', entity({ keys: key(RSA, '') })],
    ['with an entityID of 1,024 characters', entity({ entityId: 'x'.repeat(1_024) })],
    ['with ten certificates', entity({ keys: key(RSA).repeat(10) })],
  ])('%s is taken', (_name, xml) => {
    expect(parse(xml)).toMatchObject({ ssoUrl: SSO_URL });
    expect(new Set(parse(xml).certificates)).toEqual(new Set([pem(RSA)]));
  });

  test.each([
    ['of broken XML', '<a', /well-formed/],
    ['of another document', '<a/>', /describes no/],
    ['of a service provider', entity({ role: 'SPSSODescriptor' }), /describes no/],
    [
      'of SAML 1.1 alone',
      entity({ protocols: ' protocolSupportEnumeration="urn:oasis:names:tc:SAML:1.1:protocol"' }),
      /describes no/,
    ],
    ['of two identity providers', federation(entity(), entity()), /several/],
    ['without entityID', entity({ entityId: '' }), /no entityID/],
    ['with an entityID of 1,025 characters', entity({ entityId: 'x'.repeat(1_025) }), /no entityID/],
    ['without an address', entity({ services: '' }), /HTTP-Redirect/],
    [
      'with an address for another binding',
      entity({ services: service(SSO_URL, 'HTTP-POST') }),
      /HTTP-Redirect/,
    ],
    [
      'with an address where no browser may go',
      entity({ services: service('javascript:alert(1)') }),
      /https/,
    ],
    ['with an empty address', entity({ services: service('') }), /https/],
    ['without a certificate', entity({ keys: '' }), /no signing certificate/],
    [
      'with an encryption key alone',
      entity({ keys: key(RSA, ' use="encryption"') }),
      /no signing certificate/,
    ],
    ['with an elliptic key alone', entity({ keys: key(ELLIPTIC) }), /RSA key/],
    ['with a key of 1,024 bits beside', entity({ keys: key(RSA) + key(WEAK) }), /2048 bits/],
    ['with a certificate that is none', entity({ keys: key('AAAA') }), /malformed/],
    ['with eleven certificates', entity({ keys: key(RSA).repeat(11) }), /more than 10/],
  ])('%s is refused', (_name, xml, problem) => {
    expect(() => parse(xml)).toThrow(MetadataRefusal);
    expect(() => parse(xml)).toThrow(problem);
  });

  test('with several certificates expires with the last', () => {
    const { certificates, certificateExpiresAt } = parse(entity({ keys: key(LONGER) + key(RSA) }));
    expect(certificates).toEqual([pem(LONGER), pem(RSA)]);
    expect(certificateExpiresAt).toEqual(new Date(new X509Certificate(LONGER).validTo));
  });
});

test('a certificate has the same fingerprint as PEM, as Base64 and with line breaks', () => {
  const fingerprint = createHash('sha256').update(new X509Certificate(RSA).raw).digest('hex');
  for (const text of [RSA, base64(RSA), base64(RSA).replace(/(.{64})/g, '$1\n')])
    expect(fingerprintOf(text)).toBe(fingerprint);
});
