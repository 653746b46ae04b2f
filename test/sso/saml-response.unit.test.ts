import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { fingerprintOf } from '../../domain/sso/saml/idp-metadata.ts';
import { decodeResponse, inspectResponse, readStatedFacts } from '../../domain/sso/saml/saml-response.ts';
import { createSsoChecks, SsoRefusal } from '../../domain/sso/sso-checks.ts';

const EXPECTED = {
  issuer: 'https://idp.example.test',
  acsUrl: 'https://mail.test/saml/sso_1/acs',
  requestId: '_request',
};
const CERTIFICATE = readFileSync(new URL('../fixtures/saml/rsa.pem', import.meta.url), 'utf8').replace(
  /-----[^-]+-----|\s/g,
  '',
);
const SUCCESS = 'urn:oasis:names:tc:SAML:2.0:status:Success';
const ENVELOPED = '<d:Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"/>';
const CANONICAL = '<d:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>';

interface SignatureParts {
  id: string;
  canonicalization: string;
  method: string;
  digest: string;
  transforms: string;
  digestValue: string;
  value: string;
  more: string;
  namespace: string;
}
/** A signature of the right form. Whether it is right is checked later, by the library. */
const signature = ({
  id = '_a1',
  canonicalization = 'http://www.w3.org/2001/10/xml-exc-c14n#',
  method = 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
  digest = 'http://www.w3.org/2001/04/xmlenc#sha256',
  transforms = ENVELOPED + CANONICAL,
  digestValue = 'AAAA',
  value = 'BBBB',
  more = '',
  namespace = 'http://www.w3.org/2000/09/xmldsig#',
}: Partial<SignatureParts> = {}) =>
  `<d:Signature xmlns:d="${namespace}"><d:SignedInfo><d:CanonicalizationMethod Algorithm="${canonicalization}"/><d:SignatureMethod Algorithm="${method}"/><d:Reference URI="#${id}"><d:Transforms>${transforms}</d:Transforms><d:DigestMethod Algorithm="${digest}"/><d:DigestValue>${digestValue}</d:DigestValue></d:Reference></d:SignedInfo><d:SignatureValue>${value}</d:SignatureValue><d:KeyInfo><d:X509Data><d:X509Certificate>${CERTIFICATE}</d:X509Certificate></d:X509Data></d:KeyInfo>${more}</d:Signature>`;

const assertion = ({ id = '_a1', signed = signature({ id }), content = '' } = {}) =>
  `<a:Assertion ID="${id}"><a:Issuer>${EXPECTED.issuer}</a:Issuer>${signed}<a:Subject><a:SubjectConfirmation><a:SubjectConfirmationData InResponseTo="_inner"/></a:SubjectConfirmation></a:Subject><a:Conditions NotBefore="2026-11-23T11:00:00Z" NotOnOrAfter="2026-11-23T12:00:00Z"><a:AudienceRestriction><a:Audience>one</a:Audience><a:Audience>two</a:Audience></a:AudienceRestriction></a:Conditions>${content}</a:Assertion>`;

interface Parts {
  id: string;
  attributes: string;
  issuer: string;
  signed: string;
  status: string;
  assertions: string;
  more: string;
}
const response = ({
  id = '_r1',
  attributes = ` Destination="${EXPECTED.acsUrl}" InResponseTo="_request"`,
  issuer = `<a:Issuer>${EXPECTED.issuer}</a:Issuer>`,
  signed = '',
  status = `<p:Status><p:StatusCode Value="${SUCCESS}"/></p:Status>`,
  assertions = assertion(),
  more = '',
}: Partial<Parts> = {}) =>
  `<p:Response xmlns:p="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:a="urn:oasis:names:tc:SAML:2.0:assertion" ID="${id}"${attributes}>${issuer}${signed}${status}${assertions}${more}</p:Response>`;

const encode = (xml: string | Buffer) => Buffer.from(xml).toString('base64');
const refusedBy = (run: () => unknown) => {
  try {
    run();
    return 'none';
  } catch (error) {
    if (error instanceof SsoRefusal) return error.check;
    throw error;
  }
};
const decode = (field: string) => decodeResponse(field, createSsoChecks());
const inspect = (xml: string, requestId: string | null = EXPECTED.requestId) => {
  const checks = createSsoChecks();
  const check = refusedBy(() => inspectResponse(decode(encode(xml)), { ...EXPECTED, requestId }, checks));
  return { check, seen: checks.all.at(-1)?.seen ?? null, checks: checks.all };
};

describe('the form field', () => {
  test('is a document in Base64, also with line breaks', () => {
    const field = encode(response());
    for (const text of [field, field.replace(/(.{76})/g, '$1\r\n')]) {
      const { xml, response: root, assertion: found } = decode(text);
      expect([xml, root.localName, found?.localName]).toEqual([response(), 'Response', 'Assertion']);
    }
  });

  test.each([
    ['empty', ''],
    ['not Base64', '<p:Response/>'],
    ['Base64 with something behind it', `${encode(response())}!`],
    ['Base64 with something before it', `!${encode(response())}`],
    ['not UTF-8', encode(Buffer.from(response({ more: '<a:x>\u00ff</a:x>' }), 'latin1'))],
    ['not XML', encode('response')],
    ['another document', encode(assertion().replace('<a:', '<a:x '))],
    ['a document of another namespace', encode('<Response xmlns="urn:other"/>')],
    ['larger than 256 KiB', encode(response({ more: `<a:x>${' '.repeat(256 * 1024)}</a:x>` }))],
  ])('is refused if it is %s', (_name, field) => {
    expect(refusedBy(() => decode(field))).toBe('response');
  });

  test('is decoded to the same bytes, with its byte order mark', () => {
    const xml = `\ufeff<?xml version="1.0"?>${response()}`;
    expect(decode(encode(xml)).xml).toBe(xml);
  });

  test('may have 256 KiB', () => {
    const empty = response({ more: '<a:x></a:x>' });
    const xml = response({ more: `<a:x>${' '.repeat(256 * 1024 - empty.length)}</a:x>` });
    expect(Buffer.byteLength(xml)).toBe(256 * 1024);
    expect(refusedBy(() => decode(encode(xml)))).toBe('none');
    expect(refusedBy(() => decode(encode(`${xml} `)))).toBe('response');
  });
});

describe('a response is taken', () => {
  test.each([
    ['with a signed assertion', response()],
    [
      'that is signed itself',
      response({ signed: signature({ id: '_r1' }), assertions: assertion({ signed: '' }) }),
    ],
    ['that is signed, and its assertion too', response({ signed: signature({ id: '_r1' }) })],
    ['without an issuer of its own', response({ issuer: '' })],
    ['without destination and request, if only the assertion is signed', response({ attributes: '' })],
    [
      'signed with SHA-512',
      response({
        assertions: assertion({
          signed: signature({
            method: 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512',
            digest: 'http://www.w3.org/2001/04/xmlenc#sha512',
          }),
        }),
      }),
    ],
    [
      'whose canonicalization lists prefixes',
      response({
        assertions: assertion({
          signed: signature({
            transforms: `${ENVELOPED}${CANONICAL.replace('/>', '><c:InclusiveNamespaces xmlns:c="http://www.w3.org/2001/10/xml-exc-c14n#" PrefixList="xs"/></d:Transform>')}`,
          }),
        }),
      }),
    ],
    ['whose other attributes repeat an ID', response({ more: '<a:x uuid="_a1" idea="_a1"/>' })],
    ['whose ids have dots and hyphens', response({ assertions: assertion({ id: '_a.1-b' }) })],
  ])('%s', (_name, xml) => expect(inspect(xml)).toMatchObject({ check: 'none' }));

  test('to no request, where none was made', () => {
    expect(inspect(response({ attributes: '' }), null).check).toBe('none');
    expect(inspect(response(), null).check).toBe('request');
  });

  test('with every check in the list', () => {
    const { checks } = inspect(response());
    expect(checks.map(({ name }) => name)).toEqual([
      'status',
      'algorithm',
      'destination',
      'issuer',
      'request',
    ]);
    expect(checks.find(({ name }) => name === 'algorithm')?.seen).toMatch(/rsa-sha256$/);
  });
});

const assertionSigned = (parts: Partial<SignatureParts>) =>
  response({ assertions: assertion({ signed: signature(parts) }) });

describe('a response is refused', () => {
  test.each([
    ['without a status', response({ status: '' }), 'status'],
    [
      'with two statuses',
      response({ status: `<p:Status><p:StatusCode Value="${SUCCESS}"/></p:Status>`.repeat(2) }),
      'status',
    ],
    [
      'with an error',
      response({
        status: '<p:Status><p:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Responder"/></p:Status>',
      }),
      'status',
    ],
    ['with an encrypted assertion', response({ assertions: '<a:EncryptedAssertion/>' }), 'encryption'],
    ['without a signature', response({ assertions: assertion({ signed: '' }) }), 'unsigned'],
    ['with SHA-1', assertionSigned({ method: 'http://www.w3.org/2000/09/xmldsig#rsa-sha1' }), 'algorithm'],
    [
      'with HMAC',
      assertionSigned({ method: 'http://www.w3.org/2001/04/xmldsig-more#hmac-sha256' }),
      'algorithm',
    ],
    [
      'with a digest of SHA-1',
      assertionSigned({ digest: 'http://www.w3.org/2000/09/xmldsig#sha1' }),
      'algorithm',
    ],
    [
      'with canonicalization that keeps comments',
      assertionSigned({ canonicalization: 'http://www.w3.org/2001/10/xml-exc-c14n#WithComments' }),
      'algorithm',
    ],
    [
      'with XPath',
      assertionSigned({
        transforms: '<d:Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"/>',
      }),
      'algorithm',
    ],
    ['with a transform without algorithm', assertionSigned({ transforms: '<d:Transform/>' }), 'algorithm'],
    [
      'with content of a transform',
      assertionSigned({ transforms: ENVELOPED.replace('/>', '><d:XPath>1</d:XPath></d:Transform>') }),
      'algorithm',
    ],
    [
      'with prefixes elsewhere than in a transform',
      assertionSigned({}).replace(
        /(<d:CanonicalizationMethod[^>]*)\/>/,
        '$1><c:InclusiveNamespaces xmlns:c="urn:c"/></d:CanonicalizationMethod>',
      ),
      'algorithm',
    ],
    ['for another address', response({ attributes: ' Destination="https://evil.test"' }), 'destination'],
    [
      'that is signed and names no address',
      response({ attributes: '', signed: signature({ id: '_r1' }) }),
      'destination',
    ],
    ['of another issuer', response({ issuer: '<a:Issuer>https://evil.test</a:Issuer>' }), 'issuer'],
    [
      'to another request',
      response({ attributes: ` Destination="${EXPECTED.acsUrl}" InResponseTo="_other"` }),
      'request',
    ],
  ])('%s', (_name, xml, check) => expect(inspect(xml).check).toBe(check));
});

describe('a signature is refused', () => {
  const inner = response().replace(/^<p:Response/, '<p:Response');
  test.each([
    ['with a response within the response', response({ more: `<a:x>${inner}</a:x>` }), 'several responses'],
    ['with no assertion', response({ assertions: '', signed: signature({ id: '_r1' }) }), '0 assertions'],
    ['with two assertions', response({ assertions: assertion() + assertion({ id: '_a2' }) }), '2 assertions'],
    [
      'with the signed assertion in a wrapper',
      response({ assertions: `<a:x>${assertion()}</a:x>` }),
      'an assertion in another place',
    ],
    [
      'with an assertion of another namespace',
      response({
        assertions: assertion()
          .replaceAll('<a:Assertion', '<e:Assertion xmlns:e="urn:e"')
          .replaceAll('</a:Assertion', '</e:Assertion'),
      }),
      'an assertion in another place',
    ],
    ['with an ID that occurs twice', response({ id: '_a1' }), 'an ID that occurs twice'],
    ['with the ID in another spelling', response({ more: '<a:x id="_a1"/>' }), 'an ID that occurs twice'],
    ['with the ID as xml:id', response({ more: '<a:x xml:id="_a1"/>' }), 'an ID that occurs twice'],
    [
      'that stands elsewhere',
      response({ more: `<a:x ID="_x">${signature({ id: '_x' })}</a:x>` }),
      'a signature in another place',
    ],
    [
      'beside another of the same element',
      response({ assertions: assertion({ signed: signature() + signature() }) }),
      'two signatures of one element',
    ],
    ['of another element', assertionSigned({ id: '_r1' }), 'a signature of another element'],
    [
      'of an element without ID',
      response({ assertions: assertion({ id: '', signed: signature({ id: '' }) }) }),
      'a signature of another element',
    ],
    [
      'of an element whose ID is an expression',
      response({ assertions: assertion({ id: "a' or '1", signed: signature({ id: "a' or '1" }) }) }),
      'a signature of another element',
    ],
    ['of another namespace', assertionSigned({ namespace: 'urn:other' }), 'a signature of another namespace'],
    ['with an object', assertionSigned({ more: '<d:Object/>' }), 'a signature with content'],
    ['with a manifest', assertionSigned({ more: '<d:Manifest/>' }), 'a signature with content'],
    [
      'with two references',
      assertionSigned({}).replace(/(<d:Reference .*<\/d:Reference>)/, '$1$1'),
      'not one Reference',
    ],
    [
      'with two values',
      assertionSigned({ more: '<d:SignatureValue>AAAA</d:SignatureValue>' }),
      'not one SignatureValue',
    ],
    [
      'without a digest',
      assertionSigned({}).replace(/<d:DigestValue>.*<\/d:DigestValue>/, ''),
      'not one DigestValue',
    ],
    ['without SignedInfo', assertionSigned({}).replaceAll('d:SignedInfo', 'd:Info'), 'not one SignedInfo'],
    [
      'without a method',
      assertionSigned({}).replace(/<d:SignatureMethod[^>]*>/, ''),
      'not one SignatureMethod',
    ],
    [
      'with elements in its digest',
      assertionSigned({ digestValue: 'AA<d:x/>AA' }),
      'DigestValue with content',
    ],
    ['with elements in its value', assertionSigned({ value: 'AA<d:x/>AA' }), 'SignatureValue with content'],
  ])('%s', (_name, xml, problem) => {
    expect(inspect(xml)).toMatchObject({ check: 'signature', seen: problem });
  });
});

describe('before its signature is checked, a response states', () => {
  const facts = (xml: string) => readStatedFacts(decode(encode(xml)));

  test('audiences, period, request and certificate', () => {
    expect(facts(response())).toEqual({
      audiences: ['one', 'two'],
      period: '2026-11-23T11:00:00Z to 2026-11-23T12:00:00Z',
      inResponseTo: '_request',
      signer: fingerprintOf(CERTIFICATE),
    });
  });

  test('the request of its confirmation, if it names none itself', () => {
    expect(facts(response({ attributes: '' })).inResponseTo).toBe('_inner');
  });

  test('nothing, if it has no assertion', () => {
    expect(facts(response({ assertions: '', attributes: '' }))).toEqual({
      audiences: [],
      period: ' to ',
      inResponseTo: undefined,
      signer: undefined,
    });
  });
});
