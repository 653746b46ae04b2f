import { createHash, X509Certificate } from 'node:crypto';
import { storableTime } from '../../../platform/database/storable.ts';
import {
  attributeOf,
  childrenOf,
  isNamed,
  parseXml,
  textOf,
  walk,
  type XmlElement,
  XmlRefusal,
} from './xml.ts';

/** What a SAML identity provider publishes about itself. */
export interface IdpMetadata {
  entityId: string;
  /** Accepts requests with the HTTP-Redirect binding. */
  ssoUrl: string;
  /** Signing certificates in PEM, including expired ones. At least one. */
  certificates: string[];
  /** When the last certificate expires. */
  certificateExpiresAt: Date;
}

/** SHA-256 of a certificate, in hexadecimal. @param pem or only the Base64 of the certificate. */
export function fingerprintOf(pem: string): string {
  const der = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64');
  return createHash('sha256').update(der).digest('hex');
}

/** Metadata that cannot be used. The message completes "the metadata …". */
export class MetadataRefusal extends Error {}

const METADATA = 'urn:oasis:names:tc:SAML:2.0:metadata';
const DSIG = 'http://www.w3.org/2000/09/xmldsig#';
const REDIRECT_BINDING = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect';
const PROTOCOL = 'urn:oasis:names:tc:SAML:2.0:protocol';
const MAX_CERTIFICATES = 10;
const MIN_RSA_BITS = 2_048;

/** @param isUrlAllowed whether a browser may be sent to the URL. @throws MetadataRefusal */
export function parseIdpMetadata(xml: string, isUrlAllowed: (url: string) => boolean): IdpMetadata {
  let root: XmlElement;
  try {
    root = parseXml(xml);
  } catch (error) {
    if (error instanceof XmlRefusal) throw new MetadataRefusal(error.message);
    throw error;
  }
  const { entity, descriptor } = findProvider(root);
  const entityId = attributeOf(entity, 'entityID') ?? '';
  if (entityId === '' || entityId.length > 1_024) throw new MetadataRefusal('has no entityID');
  const ssoUrl = childrenOf(descriptor, METADATA, 'SingleSignOnService')
    .filter((service) => attributeOf(service, 'Binding') === REDIRECT_BINDING)
    .map((service) => attributeOf(service, 'Location') ?? '')[0];
  if (ssoUrl === undefined)
    throw new MetadataRefusal('has no SingleSignOnService with the binding HTTP-Redirect');
  if (!isUrlAllowed(ssoUrl)) throw new MetadataRefusal('has a SingleSignOnService without an https URL');
  const certificates = readCertificates(descriptor);
  return {
    entityId,
    ssoUrl,
    certificates: certificates.map((certificate) => certificate.toString()),
    certificateExpiresAt: new Date(Math.max(...certificates.map(({ validTo }) => Date.parse(validTo)))),
  };
}

/** Rejects the metadata of a federation, because it describes many identity providers. */
function findProvider(root: XmlElement): { entity: XmlElement; descriptor: XmlElement } {
  const providers = [...walk(root)]
    .filter((element) => isNamed(element, METADATA, 'EntityDescriptor'))
    .flatMap((entity) =>
      childrenOf(entity, METADATA, 'IDPSSODescriptor')
        .filter((one) =>
          (attributeOf(one, 'protocolSupportEnumeration') ?? PROTOCOL).split(/\s+/).includes(PROTOCOL),
        )
        .map((descriptor) => ({ entity, descriptor })),
    );
  const [first, second] = providers;
  if (!first) throw new MetadataRefusal('describes no SAML 2.0 identity provider');
  if (second) throw new MetadataRefusal('describes several identity providers');
  return first;
}

/** Keys without `use` are also signing keys. */
function readCertificates(descriptor: XmlElement): X509Certificate[] {
  const texts = childrenOf(descriptor, METADATA, 'KeyDescriptor')
    .filter((key) => (attributeOf(key, 'use') ?? 'signing') === 'signing')
    .flatMap((key) => [...walk(key)].filter((element) => isNamed(element, DSIG, 'X509Certificate')))
    .map((element) => textOf(element)?.replace(/\s+/g, '') ?? '');
  if (texts.length === 0) throw new MetadataRefusal('has no signing certificate');
  if (texts.length > MAX_CERTIFICATES)
    throw new MetadataRefusal(`has more than ${MAX_CERTIFICATES} certificates`);
  // Only RSA signatures are accepted. Certificates with other keys are ignored.
  const usable = texts.map(readCertificate).filter(({ publicKey }) => publicKey.asymmetricKeyType === 'rsa');
  if (usable.length === 0) throw new MetadataRefusal('has no signing certificate with an RSA key');
  return usable;
}

function readCertificate(base64: string): X509Certificate {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(Buffer.from(base64, 'base64'));
  } catch {
    throw new MetadataRefusal('has a malformed certificate');
  }
  const { asymmetricKeyType, asymmetricKeyDetails } = certificate.publicKey;
  if (storableTime(Date.parse(certificate.validTo)) === null)
    throw new MetadataRefusal('has a certificate without a valid end');
  if (asymmetricKeyType === 'rsa' && (asymmetricKeyDetails?.modulusLength ?? 0) < MIN_RSA_BITS)
    throw new MetadataRefusal(`has a certificate with an RSA key of fewer than ${MIN_RSA_BITS} bits`);
  return certificate;
}
