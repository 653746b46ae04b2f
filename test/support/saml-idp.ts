import { randomBytes } from 'node:crypto';
import { generate } from 'selfsigned';
import { SignedXml } from 'xml-crypto';

/** Key and certificate of an identity provider, in PEM. */
export interface SamlKey {
  privateKey: string;
  certificate: string;
}

export async function createSamlKey(
  options: { notBeforeDate?: Date; notAfterDate?: Date; keyType?: 'rsa' | 'ec' } = {},
): Promise<SamlKey> {
  const { private: privateKey, cert } = await generate([{ name: 'commonName', value: 'idp.example.test' }], {
    keySize: 2048,
    algorithm: 'sha256',
    ...options,
  });
  return { privateKey, certificate: cert };
}

export const SAML_ISSUER = 'https://idp.example.test/metadata';

export function idpMetadata(
  keys: readonly SamlKey[],
  { entityId = SAML_ISSUER, ssoUrl = 'https://idp.example.test/sso', use = 'use="signing"' } = {},
): string {
  const descriptors = keys.map(
    ({ certificate }) =>
      `<md:KeyDescriptor ${use}><ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data><ds:X509Certificate>${certificate.replace(/-----[^-]+-----|\s/g, '')}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>`,
  );
  return `<?xml version="1.0"?><md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="${entityId}"><md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">${descriptors.join('')}<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="${ssoUrl}"/></md:IDPSSODescriptor></md:EntityDescriptor>`;
}

/** What a response says. Undefined leaves the attribute or element out. */
export interface SamlAnswer {
  issuer: string | undefined;
  audience: string | undefined;
  acsUrl: string;
  destination: string | undefined;
  recipient: string | undefined;
  inResponseTo: string | undefined;
  /** In the response element, which may be unsigned. */
  responseInResponseTo: string | undefined;
  assertionId: string;
  nameId: string;
  nameIdFormat: string;
  email: string | undefined;
  method: string;
  confirmation: boolean;
  status: string;
  notBefore: string | undefined;
  notOnOrAfter: string | undefined;
  confirmationEnd: string | undefined;
  authnInstant: string;
  /** Further attributes. */
  attributes: string;
}

const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();

export function samlAnswer(
  given: Pick<SamlAnswer, 'acsUrl' | 'audience' | 'email'> & Partial<SamlAnswer>,
): SamlAnswer {
  return {
    issuer: SAML_ISSUER,
    destination: given.acsUrl,
    recipient: given.acsUrl,
    inResponseTo: undefined,
    responseInResponseTo: given.inResponseTo,
    assertionId: `_${randomBytes(16).toString('hex')}`,
    nameId: 'person-1',
    nameIdFormat: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
    method: 'urn:oasis:names:tc:SAML:2.0:cm:bearer',
    confirmation: true,
    status: 'urn:oasis:names:tc:SAML:2.0:status:Success',
    notBefore: at(-30),
    notOnOrAfter: at(300),
    confirmationEnd: at(300),
    authnInstant: at(0),
    attributes: '',
    ...given,
  };
}

const attribute = (name: string, value: string | undefined) =>
  value === undefined ? '' : ` ${name}="${value}"`;

export function assertionXml(answer: SamlAnswer): string {
  const confirmation = `<saml:SubjectConfirmation Method="${answer.method}"><saml:SubjectConfirmationData${attribute('Recipient', answer.recipient)}${attribute('InResponseTo', answer.inResponseTo)}${attribute('NotOnOrAfter', answer.confirmationEnd)}/></saml:SubjectConfirmation>`;
  const audience =
    answer.audience === undefined
      ? ''
      : `<saml:AudienceRestriction><saml:Audience>${answer.audience}</saml:Audience></saml:AudienceRestriction>`;
  const email =
    answer.email === undefined
      ? ''
      : `<saml:Attribute Name="email"><saml:AttributeValue>${answer.email}</saml:AttributeValue></saml:Attribute>`;
  return `<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="${answer.assertionId}" Version="2.0" IssueInstant="${at(0)}"><saml:Issuer>${answer.issuer ?? ''}</saml:Issuer><saml:Subject><saml:NameID Format="${answer.nameIdFormat}">${answer.nameId}</saml:NameID>${answer.confirmation ? confirmation : ''}</saml:Subject><saml:Conditions${attribute('NotBefore', answer.notBefore)}${attribute('NotOnOrAfter', answer.notOnOrAfter)}>${audience}</saml:Conditions><saml:AuthnStatement AuthnInstant="${answer.authnInstant}"><saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement><saml:AttributeStatement>${email}${answer.attributes}</saml:AttributeStatement></saml:Assertion>`;
}

/** @param assertion default: that of the answer, unsigned. */
export function responseXml(answer: SamlAnswer, assertion = assertionXml(answer), extensions = ''): string {
  return `<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" ID="_r${answer.assertionId}" Version="2.0" IssueInstant="${at(0)}"${attribute('Destination', answer.destination)}${attribute('InResponseTo', answer.responseInResponseTo)}><saml:Issuer xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion">${SAML_ISSUER}</saml:Issuer>${extensions}<samlp:Status><samlp:StatusCode Value="${answer.status}"/></samlp:Status>${assertion}</samlp:Response>`;
}

const ALGORITHMS = {
  signatureAlgorithm: 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
  digestAlgorithm: 'http://www.w3.org/2001/04/xmlenc#sha256',
};

/** Signs the first element of a name in a document, as identity providers do. */
export function signXml(
  xml: string,
  element: 'Assertion' | 'Response',
  { privateKey }: Pick<SamlKey, 'privateKey'>,
  {
    signatureAlgorithm = ALGORITHMS.signatureAlgorithm,
    digestAlgorithm = ALGORITHMS.digestAlgorithm,
    hmac = false,
    transforms = [
      'http://www.w3.org/2000/09/xmldsig#enveloped-signature',
      'http://www.w3.org/2001/10/xml-exc-c14n#',
    ],
  } = {},
): string {
  const path = `//*[local-name(.)='${element}']`;
  const signed = new SignedXml({
    privateKey,
    signatureAlgorithm,
    canonicalizationAlgorithm: 'http://www.w3.org/2001/10/xml-exc-c14n#',
  });
  if (hmac) signed.enableHMAC();
  signed.addReference({ xpath: path, digestAlgorithm, transforms });
  signed.computeSignature(xml, {
    location: { reference: `${path}/*[local-name(.)='Issuer']`, action: 'after' },
  });
  return signed.getSignedXml();
}

export const encodeSaml = (xml: string | Buffer): string => Buffer.from(xml).toString('base64');
