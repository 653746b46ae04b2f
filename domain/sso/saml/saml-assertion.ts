import { LATEST_STORABLE_MS, storableTime } from '../../../platform/database/storable.ts';
import type { StatedIdentity } from '../check-identity.ts';
import type { SsoChecks } from '../sso-checks.ts';
import { ASSERTION } from './saml-response.ts';
import { attributeOf, childrenOf, isNamed, onlyChild, parseXml, textOf, type XmlElement } from './xml.ts';

export interface AssertionExpectations {
  issuer: string;
  /** Entity id of this service for the configuration. */
  audience: string;
  acsUrl: string;
  /** Id of the request of this browser; null for a login that the identity provider began. */
  requestId: string | null;
}

export interface SamlIdentity extends StatedIdentity {
  assertionId: string;
  /** The assertion is refused after this time, so its id need not be remembered for longer. */
  expiresAt: Date;
}

const BEARER = 'urn:oasis:names:tc:SAML:2.0:cm:bearer';
const TRANSIENT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient';
const EMAIL_FORMAT = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';
const TOLERANCE_MS = 60_000;
/** Names that common identity providers give the attribute, in order of preference. */
const EMAIL_ATTRIBUTES = [
  'email',
  'mail',
  'emailAddress',
  'urn:oid:0.9.2342.19200300.100.1.3',
  'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress',
];
const NAME_ATTRIBUTES = [
  'displayName',
  'name',
  'urn:oid:2.16.840.1.113730.3.1.241',
  'http://schemas.microsoft.com/identity/claims/displayname',
  'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name',
];

/**
 * Reads an assertion whose signature was verified. Everything is taken from the signed bytes.
 *
 * @param xml the signed element, as the signature covers it.
 * @throws SsoRefusal
 */
export function readAssertion(
  xml: string,
  expected: AssertionExpectations,
  checks: SsoChecks,
  now = Date.now(),
): SamlIdentity {
  const signed = parseXml(xml);
  const assertion = isNamed(signed, ASSERTION, 'Assertion')
    ? signed
    : onlyChild(signed, ASSERTION, 'Assertion');
  const assertionId = attributeOf(assertion, 'ID') ?? '';
  if (!assertion || attributeOf(assertion, 'Version') !== '2.0' || assertionId === '')
    return checks.fail('response', 'no SAML 2.0 assertion');
  const issuedAt = attributeOf(assertion, 'IssueInstant');
  checks.require('time', isAfter(now, issuedAt, true), `issued ${issuedAt}`, 'not in the future');
  const issuer = textOf(onlyChild(assertion, ASSERTION, 'Issuer'));
  checks.require('issuer', issuer === expected.issuer, issuer ?? 'none', expected.issuer);
  requireConditions(assertion, expected, { checks, now });
  const subject = onlyChild(assertion, ASSERTION, 'Subject');
  if (!subject) return checks.fail('subject', 'none');
  const expiresAt = requireConfirmation(subject, expected, { checks, now });
  const nameId = onlyChild(subject, ASSERTION, 'NameID');
  const name = textOf(nameId);
  const format = attributeOf(nameId, 'Format');
  if (name === undefined)
    return checks.fail('subject', nameId ? 'a NameID with content' : 'no NameID', 'one NameID');
  // A transient NameID changes with every login, so each login would create another person.
  if (format === TRANSIENT) return checks.fail('subject', 'transient', 'a lasting NameID');
  const attributes = readAttributes(assertion);
  return {
    assertionId,
    expiresAt,
    issuer: expected.issuer,
    subject: name,
    email: findAttribute(attributes, EMAIL_ATTRIBUTES) ?? (format === EMAIL_FORMAT ? name : undefined),
    emailVerified: undefined,
    name: findAttribute(attributes, NAME_ATTRIBUTES),
    authenticatedAt: readStatement(assertion, { checks, now }),
  };
}

interface Context {
  checks: SsoChecks;
  now: number;
}

function requireConditions(
  assertion: XmlElement,
  expected: AssertionExpectations,
  { checks, now }: Context,
): void {
  const conditions = onlyChild(assertion, ASSERTION, 'Conditions');
  if (!conditions) throw checks.fail('audience', 'not one Conditions element', expected.audience);
  const [notBefore, notOnOrAfter] = ['NotBefore', 'NotOnOrAfter'].map((name) =>
    attributeOf(conditions, name),
  );
  const isValid = isAfter(now, notBefore, true) && isBefore(now, notOnOrAfter, true);
  checks.require('time', isValid, `${notBefore ?? ''} to ${notOnOrAfter ?? ''}`, new Date(now).toISOString());
  const restrictions = childrenOf(conditions, ASSERTION, 'AudienceRestriction').map((restriction) =>
    childrenOf(restriction, ASSERTION, 'Audience').map((audience) => textOf(audience)),
  );
  const isMeant =
    restrictions.length > 0 && restrictions.every((audiences) => audiences.includes(expected.audience));
  checks.require('audience', isMeant, restrictions.flat().join(', ') || 'none', expected.audience);
}

/** One confirmation must pass all checks (SAML profiles section 4.1.4.3). Returns when it expires. */
function requireConfirmation(
  subject: XmlElement,
  expected: AssertionExpectations,
  { checks, now }: Context,
): Date {
  const all = childrenOf(subject, ASSERTION, 'SubjectConfirmation');
  const methodOf = (confirmation: XmlElement) => attributeOf(confirmation, 'Method');
  const confirmations = all.filter((confirmation) => methodOf(confirmation) === BEARER);
  checks.require('confirmation', confirmations.length > 0, all.map(methodOf).join(', ') || 'none', BEARER);
  const data = confirmations.map((confirmation) =>
    onlyChild(confirmation, ASSERTION, 'SubjectConfirmationData'),
  );
  const recipients = data.filter((one) => attributeOf(one, 'Recipient') === expected.acsUrl);
  const seen = data.map((one) => attributeOf(one, 'Recipient') ?? 'none').join(', ');
  checks.require('recipient', recipients.length > 0, seen, expected.acsUrl);
  const requestOf = (one: XmlElement | undefined) => attributeOf(one, 'InResponseTo') ?? null;
  const answers = recipients.filter((one) => requestOf(one) === expected.requestId);
  const requests = recipients.map((one) => requestOf(one) ?? 'none').join(', ');
  checks.require('request', answers.length > 0, requests, expected.requestId ?? 'none');
  const [valid] = answers.filter(
    (one) =>
      isAfter(now, attributeOf(one, 'NotBefore'), true) &&
      isBefore(now, attributeOf(one, 'NotOnOrAfter'), false),
  );
  const notOnOrAfter = attributeOf(valid ?? answers[0], 'NotOnOrAfter');
  if (!valid) return checks.fail('time', notOnOrAfter ?? 'no NotOnOrAfter', new Date(now).toISOString());
  const end = (parseTime(notOnOrAfter) ?? now) + 2 * TOLERANCE_MS;
  return storableTime(end) ?? new Date(LATEST_STORABLE_MS);
}

/** When the person signed in at the identity provider. */
function readStatement(assertion: XmlElement, { checks, now }: Context): Date | null {
  const [statement] = childrenOf(assertion, ASSERTION, 'AuthnStatement');
  if (!statement) return checks.fail('response', 'no AuthnStatement', 'an AuthnStatement');
  const end = attributeOf(statement, 'SessionNotOnOrAfter');
  const hasNotEnded = isBefore(now, end, true);
  if (end !== undefined) checks.require('time', hasNotEnded, `session until ${end}`, 'in the future');
  const signedInAt = attributeOf(statement, 'AuthnInstant');
  checks.require('time', isAfter(now, signedInAt, true), `signed in ${signedInAt}`, 'not in the future');
  const instant = parseTime(signedInAt);
  return instant === null ? null : new Date(instant);
}

function readAttributes(assertion: XmlElement): Map<string, string[]> {
  const values = new Map<string, string[]>();
  for (const statement of childrenOf(assertion, ASSERTION, 'AttributeStatement'))
    for (const attribute of childrenOf(statement, ASSERTION, 'Attribute')) {
      const name = attributeOf(attribute, 'Name')?.toLowerCase() ?? '';
      const texts = childrenOf(attribute, ASSERTION, 'AttributeValue').map((value) => textOf(value) ?? '');
      values.set(name, [...(values.get(name) ?? []), ...texts]);
    }
  return values;
}

/** Returns a list if there are several values, so that no address is chosen at random. */
function findAttribute(
  attributes: Map<string, string[]>,
  names: readonly string[],
): string | string[] | undefined {
  const found = names
    .map((name) => attributes.get(name.toLowerCase()))
    .find((values) => values !== undefined);
  return found?.length === 1 ? found[0] : found;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

function parseTime(text: string | undefined): number | null {
  const time = text !== undefined && TIME.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? null : time;
}

function isAfter(now: number, notBefore: string | undefined, mayBeAbsent: boolean): boolean {
  if (notBefore === undefined) return mayBeAbsent;
  const time = parseTime(notBefore);
  return time !== null && now + TOLERANCE_MS >= time;
}

function isBefore(now: number, notOnOrAfter: string | undefined, mayBeAbsent: boolean): boolean {
  if (notOnOrAfter === undefined) return mayBeAbsent;
  const time = parseTime(notOnOrAfter);
  return time !== null && now - TOLERANCE_MS < time;
}
