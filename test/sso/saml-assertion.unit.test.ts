import { describe, expect, test } from '@jest/globals';
import { readAssertion } from '../../domain/sso/saml/saml-assertion.ts';
import { createSsoChecks, SsoRefusal } from '../../domain/sso/sso-checks.ts';

const NOW = Date.parse('2026-11-23T12:00:00Z');
const at = (seconds: number) => new Date(NOW + seconds * 1_000).toISOString();
const SAML = 'urn:oasis:names:tc:SAML:2.0:assertion';
const EXPECTED = {
  issuer: 'https://idp.example.test',
  audience: 'https://mail.test/saml/sso_1',
  acsUrl: 'https://mail.test/saml/sso_1/acs',
  requestId: '_request',
};
const BEARER = 'urn:oasis:names:tc:SAML:2.0:cm:bearer';
const EMAIL_FORMAT = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';

const attributes = (values: Record<string, string | undefined>) =>
  Object.entries(values)
    .map(([name, value]) => (value === undefined ? '' : ` ${name}="${value}"`))
    .join('');
const audiences = (...names: string[]) =>
  `<AudienceRestriction>${names.map((name) => `<Audience>${name}</Audience>`).join('')}</AudienceRestriction>`;
const confirmation = (data: Record<string, string | undefined> = {}, method = BEARER) =>
  `<SubjectConfirmation Method="${method}"><SubjectConfirmationData${attributes({
    Recipient: EXPECTED.acsUrl,
    InResponseTo: EXPECTED.requestId,
    NotOnOrAfter: at(300),
    ...data,
  })}/></SubjectConfirmation>`;
const attribute = (name: string, ...values: string[]) =>
  `<Attribute Name="${name}">${values.map((value) => `<AttributeValue>${value}</AttributeValue>`).join('')}</Attribute>`;
const nameId = (text = 'person-1', format = 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent') =>
  `<NameID Format="${format}">${text}</NameID>`;

interface Parts {
  version: string;
  id: string | undefined;
  issuedAt: string | undefined;
  issuer: string;
  nameId: string;
  confirmations: string;
  subject: string;
  period: Record<string, string | undefined>;
  audiences: string;
  conditions: string;
  statement: string;
  attributes: string;
}
function assertion(parts: Partial<Parts> = {}): string {
  const {
    version = '2.0',
    issuer = EXPECTED.issuer,
    confirmations = confirmation(),
    subject = `<Subject>${parts.nameId ?? nameId()}${confirmations}</Subject>`,
    period = { NotBefore: at(-30), NotOnOrAfter: at(300) },
    conditions = `<Conditions${attributes(period)}>${parts.audiences ?? audiences(EXPECTED.audience)}</Conditions>`,
    statement = `<AuthnStatement AuthnInstant="${at(-10)}"/>`,
  } = parts;
  const own = attributes({
    ID: 'id' in parts ? parts.id : '_a1',
    Version: version,
    IssueInstant: 'issuedAt' in parts ? parts.issuedAt : at(0),
  });
  return `<Assertion xmlns="${SAML}"${own}><Issuer>${issuer}</Issuer>${subject}${conditions}${statement}<AttributeStatement>${parts.attributes ?? ''}</AttributeStatement></Assertion>`;
}
const read = (xml: string, expected: Partial<Parameters<typeof readAssertion>[1]> = {}) =>
  readAssertion(xml, { ...EXPECTED, ...expected }, createSsoChecks(), NOW);
const failedCheck = (xml: string, expected: Partial<Parameters<typeof readAssertion>[1]> = {}) => {
  try {
    read(xml, expected);
    return 'none';
  } catch (error) {
    if (error instanceof SsoRefusal) return error.check;
    throw error;
  }
};

describe('an assertion', () => {
  test('names the person, when they signed in and until when it may be used', () => {
    const xml = assertion({
      attributes: attribute('email', 'ada@example.com') + attribute('displayName', 'Ada'),
    });
    expect(read(xml)).toEqual({
      assertionId: '_a1',
      expiresAt: new Date(NOW + 300_000 + 120_000),
      issuer: EXPECTED.issuer,
      subject: 'person-1',
      email: 'ada@example.com',
      emailVerified: undefined,
      name: 'Ada',
      authenticatedAt: new Date(at(-10)),
    });
  });

  test('may be the only one of a signed response', () => {
    const response = (content: string) =>
      `<p:Response xmlns:p="urn:oasis:names:tc:SAML:2.0:protocol">${content}</p:Response>`;
    expect(read(response(assertion())).subject).toBe('person-1');
    expect(failedCheck(response(assertion() + assertion()))).toBe('response');
    expect(failedCheck(response(''))).toBe('response');
  });

  test('may answer no request, where none was made', () => {
    const xml = assertion({ confirmations: confirmation({ InResponseTo: undefined }) });
    expect(read(xml, { requestId: null }).subject).toBe('person-1');
    expect(failedCheck(xml)).toBe('request');
    expect(failedCheck(assertion(), { requestId: null })).toBe('request');
  });

  test('lists what was checked', () => {
    const checks = createSsoChecks();
    readAssertion(assertion(), EXPECTED, checks, NOW);
    expect(new Set(checks.all.map(({ name }) => name))).toEqual(
      new Set(['time', 'issuer', 'audience', 'confirmation', 'recipient', 'request']),
    );
    expect(checks.all.every(({ passed }) => passed)).toBe(true);
  });
});

describe('an assertion is refused', () => {
  test.each<[string, Partial<Parts>, string]>([
    ['of another version', { version: '1.1' }, 'response'],
    ['without ID', { id: undefined }, 'response'],
    ['with an empty ID', { id: '' }, 'response'],
    ['of another issuer', { issuer: 'https://evil.test' }, 'issuer'],
    ['issued in the future', { issuedAt: at(61) }, 'time'],
    ['issued at what is no time', { issuedAt: 'now' }, 'time'],
    ['without conditions', { conditions: '' }, 'audience'],
    ['without an audience', { audiences: '' }, 'audience'],
    ['for another audience', { audiences: audiences('https://other.test') }, 'audience'],
    [
      'whose restrictions do not all name this service',
      { audiences: audiences(EXPECTED.audience) + audiences('https://other.test') },
      'audience',
    ],
    ['that is not valid yet', { period: { NotBefore: at(61), NotOnOrAfter: at(300) } }, 'time'],
    ['that has expired', { period: { NotBefore: at(-300), NotOnOrAfter: at(-60) } }, 'time'],
    ['whose period is no time', { period: { NotOnOrAfter: 'tomorrow' } }, 'time'],
    ['without a subject', { subject: '' }, 'subject'],
    ['without a NameID', { nameId: '' }, 'subject'],
    ['with two NameIDs', { nameId: nameId() + nameId('person-2') }, 'subject'],
    ['with elements in its NameID', { nameId: nameId('<b>person-1</b>') }, 'subject'],
    [
      'with a NameID that is new each time',
      { nameId: nameId('x', 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient') },
      'subject',
    ],
    ['without a confirmation', { confirmations: '' }, 'confirmation'],
    [
      'for the holder of a key',
      { confirmations: confirmation({}, 'urn:oasis:names:tc:SAML:2.0:cm:holder-of-key') },
      'confirmation',
    ],
    ['for another address', { confirmations: confirmation({ Recipient: 'https://evil.test' }) }, 'recipient'],
    ['for no address', { confirmations: confirmation({ Recipient: undefined }) }, 'recipient'],
    ['to another request', { confirmations: confirmation({ InResponseTo: '_other' }) }, 'request'],
    ['whose confirmation has expired', { confirmations: confirmation({ NotOnOrAfter: at(-60) }) }, 'time'],
    [
      'whose confirmation does not expire',
      { confirmations: confirmation({ NotOnOrAfter: undefined }) },
      'time',
    ],
    ['whose confirmation begins later', { confirmations: confirmation({ NotBefore: at(61) }) }, 'time'],
    [
      'none of whose confirmations passes all checks',
      {
        confirmations: confirmation({ InResponseTo: '_other' }) + confirmation({ NotOnOrAfter: at(-60) }),
      },
      'time',
    ],
    ['without a sign-in', { statement: '' }, 'response'],
    ['with a sign-in in the future', { statement: `<AuthnStatement AuthnInstant="${at(61)}"/>` }, 'time'],
    [
      'with a session that has ended',
      { statement: `<AuthnStatement AuthnInstant="${at(-90)}" SessionNotOnOrAfter="${at(-60)}"/>` },
      'time',
    ],
  ])('%s', (_name, parts, check) => expect(failedCheck(assertion(parts))).toBe(check));
});

describe('an assertion is taken', () => {
  test.each<[string, Partial<Parts>]>([
    ['issued a minute ahead of our clock', { issuedAt: at(60) }],
    ['that does not say when it was issued', { issuedAt: undefined }],
    ['without a period', { period: {} }],
    ['valid in a minute', { period: { NotBefore: at(60) } }],
    ['that expired less than a minute ago', { period: { NotOnOrAfter: at(-59) } }],
    ['with times in another zone', { period: { NotBefore: '2026-11-23T13:00:30.123456789+01:00' } }],
    ['for several audiences', { audiences: audiences('https://other.test', EXPECTED.audience) }],
    [
      'whose confirmation expired less than a minute ago',
      { confirmations: confirmation({ NotOnOrAfter: at(-59) }) },
    ],
    [
      'whose second confirmation passes',
      { confirmations: confirmation({ Recipient: 'https://other.test' }) + confirmation() },
    ],
    [
      'with a session that ends later',
      { statement: `<AuthnStatement AuthnInstant="${at(60)}" SessionNotOnOrAfter="${at(-59)}"/>` },
    ],
  ])('%s', (_name, parts) => expect(failedCheck(assertion(parts))).toBe('none'));
});

describe('times', () => {
  test.each([
    '2026-11-23',
    '2026-11-23T11:59Z',
    '2026-11-23T11:59:00',
    '2026-13-23T11:59:00Z',
    ' 2026-11-23T11:59:00Z',
    '2026-11-23T11:59:00Z x',
  ])('%j is none', (time) => {
    expect(failedCheck(assertion({ period: { NotBefore: time } }))).toBe('time');
  });

  test('of the sign-in may be missing', () => {
    expect(read(assertion({ statement: '<AuthnStatement/>' })).authenticatedAt).toBeNull();
  });

  test('that cannot be stored are remembered as the latest that can', () => {
    const xml = assertion({ confirmations: confirmation({ NotOnOrAfter: '9999-12-31T23:59:59Z' }) });
    expect(read(xml).expiresAt).toEqual(new Date('9999-12-31T23:59:59Z'));
  });
});

describe('the email address', () => {
  const emailOf = (parts: Partial<Parts>) => read(assertion(parts)).email;

  test.each([
    'email',
    'EMAIL',
    'mail',
    'emailAddress',
    'urn:oid:0.9.2342.19200300.100.1.3',
    'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress',
  ])('is the attribute %s', (name) => {
    expect(emailOf({ attributes: attribute(name, 'ada@example.com') })).toBe('ada@example.com');
  });

  test('is the attribute that is preferred, of several', () => {
    const given = attribute('mail', 'b@example.com') + attribute('email', 'a@example.com');
    expect(emailOf({ attributes: given })).toBe('a@example.com');
  });

  test('is not taken at random from several values', () => {
    const values = ['a@example.com', 'b@example.com'];
    expect(emailOf({ attributes: attribute('email', ...values) })).toEqual(values);
    expect(emailOf({ attributes: values.map((value) => attribute('email', value)).join('') })).toEqual(
      values,
    );
    expect(emailOf({ attributes: attribute('email') })).toEqual([]);
    expect(emailOf({ attributes: attribute('email', '<b>a@example.com</b>') })).toBe('');
  });

  test('is the NameID, if that is an address by its format', () => {
    const name = 'ada@example.com';
    expect(emailOf({ nameId: nameId(name, EMAIL_FORMAT) })).toBe(name);
    expect(emailOf({ nameId: nameId(name) })).toBeUndefined();
  });
});

test.each([
  'displayName',
  'name',
  'urn:oid:2.16.840.1.113730.3.1.241',
  'http://schemas.microsoft.com/identity/claims/displayname',
  'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name',
])('the name is the attribute %s', (name) => {
  expect(read(assertion({ attributes: attribute(name, 'Ada') })).name).toBe('Ada');
});
