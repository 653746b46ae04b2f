import type { SsoChecks } from '../sso-checks.ts';
import { fingerprintOf } from './idp-metadata.ts';
import {
  attributeOf,
  childrenOf,
  elementsOf,
  isNamed,
  onlyChild,
  parseXml,
  textOf,
  walk,
  type XmlElement,
  XmlRefusal,
} from './xml.ts';

export const ASSERTION = 'urn:oasis:names:tc:SAML:2.0:assertion';
const PROTOCOL = 'urn:oasis:names:tc:SAML:2.0:protocol';
const DSIG = 'http://www.w3.org/2000/09/xmldsig#';
const SUCCESS = 'urn:oasis:names:tc:SAML:2.0:status:Success';

/** Excludes SHA-1, HMAC (whose key would be the public certificate), XSLT and XPath. */
const ALLOWED_ALGORITHMS: Record<string, readonly string[]> = {
  SignatureMethod: [
    'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
    'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512',
  ],
  DigestMethod: ['http://www.w3.org/2001/04/xmlenc#sha256', 'http://www.w3.org/2001/04/xmlenc#sha512'],
  CanonicalizationMethod: ['http://www.w3.org/2001/10/xml-exc-c14n#'],
  Transform: [
    'http://www.w3.org/2000/09/xmldsig#enveloped-signature',
    'http://www.w3.org/2001/10/xml-exc-c14n#',
  ],
};
const MAX_RESPONSE_BYTES = 256 * 1024;

/** A response before its signature is verified. None of it is trusted. */
export interface ResponseInspection {
  xml: string;
  response: XmlElement;
  assertion: XmlElement | undefined;
}

/** Decodes the form field. @throws SsoRefusal */
export function decodeResponse(samlResponse: string, checks: SsoChecks): ResponseInspection {
  const base64 = samlResponse.replace(/\s+/g, '');
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return checks.fail('response', 'not base64');
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length > MAX_RESPONSE_BYTES)
    return checks.fail('response', `${bytes.length} bytes`, `${MAX_RESPONSE_BYTES}`);
  let xml: string;
  let response: XmlElement;
  try {
    xml = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    response = parseXml(xml);
  } catch (error) {
    return checks.fail('response', error instanceof XmlRefusal ? error.message : 'not UTF-8');
  }
  checks.require('response', isNamed(response, PROTOCOL, 'Response'), response.localName, 'Response');
  return { xml, response, assertion: onlyChild(response, ASSERTION, 'Assertion') };
}

/**
 * Checks the whole document before any signature. Libraries traverse documents differently, and every known signature
 * wrapping attack (XSW) adds an element, an ID or a signature where none belongs.
 *
 * @throws SsoRefusal
 */
export function inspectResponse(
  { response }: ResponseInspection,
  expected: { issuer: string; acsUrl: string; requestId: string | null },
  checks: SsoChecks,
): void {
  const elements = [...walk(response)];
  const has = (name: string) => elements.some(({ localName }) => localName === name);
  const status = onlyChild(response, PROTOCOL, 'Status');
  const code = attributeOf(status && onlyChild(status, PROTOCOL, 'StatusCode'), 'Value');
  checks.require('status', code === SUCCESS, code ?? 'none', SUCCESS);
  if (has('EncryptedAssertion')) checks.fail('encryption', 'EncryptedAssertion', 'Assertion');
  if (!has('Signature')) checks.fail('unsigned', 'no Signature', 'a signed response or assertion');
  requireAlgorithms(elements, checks);
  requireStructure(response, elements, checks);
  const destination = attributeOf(response, 'Destination');
  const isSigned = childrenOf(response, DSIG, 'Signature').length > 0;
  // SAML bindings section 3.5.5.2: a signed response names its destination.
  const isMeant = destination === undefined ? !isSigned : destination === expected.acsUrl;
  checks.require('destination', isMeant, destination ?? 'none', expected.acsUrl);
  const issuer = onlyChild(response, ASSERTION, 'Issuer');
  const isIssuer = issuer === undefined || textOf(issuer) === expected.issuer;
  checks.require('issuer', isIssuer, textOf(issuer) ?? 'none', expected.issuer);
  const inResponseTo = attributeOf(response, 'InResponseTo');
  const isAnswer = inResponseTo === undefined || inResponseTo === expected.requestId;
  checks.require('request', isAnswer, inResponseTo ?? 'no InResponseTo', expected.requestId ?? 'none');
}

function requireAlgorithms(elements: readonly XmlElement[], checks: SsoChecks): void {
  for (const element of elements) {
    const { localName } = element;
    const allowed =
      localName !== null && Object.hasOwn(ALLOWED_ALGORITHMS, localName) && ALLOWED_ALGORITHMS[localName];
    if (!allowed) continue;
    const algorithm = attributeOf(element, 'Algorithm') ?? 'none';
    if (!allowed.includes(algorithm))
      checks.fail('algorithm', `${localName} ${algorithm}`, allowed.join(', '));
    const isParameter = (child: XmlElement) =>
      localName === 'Transform' && child.localName === 'InclusiveNamespaces';
    if (!elementsOf(element).every(isParameter)) checks.fail('algorithm', `${localName} with content`);
  }
  const method = elements.find(({ localName }) => localName === 'SignatureMethod');
  checks.pass('algorithm', attributeOf(method, 'Algorithm'));
}

function requireStructure(response: XmlElement, elements: readonly XmlElement[], checks: SsoChecks): void {
  const fail = (problem: string) => checks.fail('signature', problem, 'one signed assertion');
  const named = (name: string) => elements.filter(({ localName }) => localName === name);
  if (named('Response').length !== 1) fail('several responses');
  const assertions = named('Assertion');
  const [assertion] = assertions;
  if (assertions.length !== 1) fail(`${assertions.length} assertions`);
  if (!assertion || !isNamed(assertion, ASSERTION, 'Assertion') || assertion.parentNode !== response)
    fail('an assertion in another place');
  const ids = elements.flatMap(({ attributes }) =>
    Array.from(attributes).flatMap(({ name, value }) => (/^(?:xml:)?id$/i.test(name) ? [value] : [])),
  );
  if (new Set(ids).size !== ids.length) fail('an ID that occurs twice');
  const signatures = named('Signature');
  for (const signature of signatures) {
    const owner = signature.parentNode;
    if (owner !== response && owner !== assertion) fail('a signature in another place');
    requireSignature(signature, owner as XmlElement, fail);
  }
  for (const owner of [response, ...assertions])
    if (signatures.filter(({ parentNode }) => parentNode === owner).length > 1)
      fail('two signatures of one element');
}

function requireSignature(signature: XmlElement, owner: XmlElement, fail: (problem: string) => void): void {
  if (!isNamed(signature, DSIG, 'Signature')) fail('a signature of another namespace');
  const parts = [...walk(signature)];
  if (parts.some(({ localName }) => localName === 'Object' || localName === 'Manifest'))
    fail('a signature with content');
  for (const name of ['SignedInfo', 'SignatureValue', 'Reference', 'DigestValue', 'SignatureMethod'])
    if (parts.filter(({ localName }) => localName === name).length !== 1) fail(`not one ${name}`);
  for (const part of parts)
    if (
      (part.localName === 'DigestValue' || part.localName === 'SignatureValue') &&
      textOf(part) === undefined
    )
      fail(`${part.localName} with content`);
  const reference = parts.find(({ localName }) => localName === 'Reference');
  const id = attributeOf(owner, 'ID') ?? '';
  if (!/^[\w.-]+$/.test(id) || attributeOf(reference, 'URI') !== `#${id}`)
    fail('a signature of another element');
}

/**
 * What a response says about itself, before its signature is verified. Used for the list of attempts, and to find the
 * configuration whose keys are tried.
 */
export interface StatedFacts {
  audiences: string[];
  /** The validity period in the conditions. */
  period: string;
  inResponseTo: string | undefined;
  /** Fingerprint of the certificate in the signature. */
  signer: string | undefined;
}

export function readStatedFacts({ response, assertion }: ResponseInspection): StatedFacts {
  const conditions = assertion && onlyChild(assertion, ASSERTION, 'Conditions');
  const restrictions = conditions ? childrenOf(conditions, ASSERTION, 'AudienceRestriction') : [];
  const elements = [...walk(response)];
  const data = elements.find(({ localName }) => localName === 'SubjectConfirmationData');
  const certificate = textOf(elements.find((element) => isNamed(element, DSIG, 'X509Certificate')));
  return {
    audiences: restrictions
      .flatMap((restriction) => childrenOf(restriction, ASSERTION, 'Audience'))
      .map((audience) => textOf(audience) ?? ''),
    period: `${attributeOf(conditions, 'NotBefore') ?? ''} to ${attributeOf(conditions, 'NotOnOrAfter') ?? ''}`,
    inResponseTo: attributeOf(response, 'InResponseTo') ?? attributeOf(data, 'InResponseTo'),
    signer: certificate && fingerprintOf(certificate),
  };
}
