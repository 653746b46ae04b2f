import { X509Certificate } from 'node:crypto';
import { SAML, ValidateInResponseTo } from '@node-saml/node-saml';
import { type SsoChecks, SsoRefusal } from '../sso-checks.ts';
import { fingerprintOf, type IdpMetadata, MetadataRefusal, parseIdpMetadata } from './idp-metadata.ts';
import { readAssertion, type SamlIdentity } from './saml-assertion.ts';
import { inspectResponse, type ResponseInspection, readStatedFacts } from './saml-response.ts';
import { XmlRefusal } from './xml.ts';

/** This service, as a configuration presents it to its identity provider. */
export interface ServiceProvider {
  entityId: string;
  acsUrl: string;
}

export interface SamlClient {
  serviceProvider(serviceProviderId: string): ServiceProvider;
  /** The id from which {@link serviceProvider} builds the entity id. */
  serviceProviderIdOf(entityId: string): string | undefined;
  /** The address that all configurations share, given by the specification. */
  readonly sharedAcsUrl: string;
  /** @throws SsoRefusal */
  authorizationUrl(
    metadataXml: string | null,
    request: { provider: ServiceProvider; requestId: string; relayState: string; isFresh: boolean },
    checks: SsoChecks,
  ): Promise<string>;
  /**
   * Checks the document, verifies the signature, and then checks the signed assertion.
   *
   * @param answer.requestId null for a login that the identity provider began.
   * @throws SsoRefusal
   */
  readAnswer(
    metadataXml: string | null,
    answer: { inspection: ResponseInspection; provider: ServiceProvider; requestId: string | null },
    checks: SsoChecks,
  ): Promise<SamlIdentity>;
  /** @throws MetadataRefusal */
  parseMetadata(xml: string): IdpMetadata;
}

const TOLERANCE_MS = 60_000;

/** @param options.allowHttp allows identity providers without TLS, in development. */
export function createSamlClient({
  publicUrl,
  allowHttp,
}: {
  publicUrl: string;
  allowHttp: boolean;
}): SamlClient {
  const ssoBaseUrl = `${publicUrl.replace(/\/+$/, '')}/api/v1/auth/sso`;
  const isUrlAllowed = (url: string) => {
    const protocol = URL.parse(url)?.protocol;
    return protocol === 'https:' || (allowHttp && protocol === 'http:');
  };
  const parseMetadata = (xml: string) => parseIdpMetadata(xml, isUrlAllowed);

  function readMetadata(xml: string | null, checks: SsoChecks): IdpMetadata {
    if (xml === null) return checks.fail('provider', 'no metadata');
    try {
      return parseMetadata(xml);
    } catch (error) {
      if (!(error instanceof MetadataRefusal)) throw error;
      return checks.fail('provider', `the metadata ${error.message}`);
    }
  }

  return {
    sharedAcsUrl: `${ssoBaseUrl}/saml/callback`,
    parseMetadata,
    serviceProviderIdOf: (entityId) =>
      entityId.startsWith(`${ssoBaseUrl}/saml/`) ? entityId.slice(`${ssoBaseUrl}/saml/`.length) : undefined,
    serviceProvider: (id) => ({
      entityId: `${ssoBaseUrl}/saml/${id}`,
      acsUrl: `${ssoBaseUrl}/saml/${id}/acs`,
    }),

    authorizationUrl(metadataXml, { provider, requestId, relayState, isFresh }, checks) {
      const metadata = readMetadata(metadataXml, checks);
      const saml = createSaml(metadata, metadata.certificates, provider, { requestId, isFresh });
      return saml.getAuthorizeUrlAsync(relayState, undefined, {});
    },

    async readAnswer(metadataXml, { inspection, provider, requestId }, checks) {
      const metadata = readMetadata(metadataXml, checks);
      const expected = { ...provider, issuer: metadata.entityId, audience: provider.entityId, requestId };
      inspectResponse(inspection, expected, checks);
      const ends = metadata.certificates.map((pem) => ({ pem, end: new X509Certificate(pem).validTo }));
      const valid = ends.filter(({ end }) => Date.parse(end) > Date.now()).map(({ pem }) => pem);
      if (valid.length === 0)
        return checks.failKey(
          ends.map(({ pem, end }) => `${describeCertificate(pem)} ended ${end}`).join(', '),
          'a certificate that has not ended',
        );
      const saml = createSaml(metadata, valid, provider, { requestId: requestId ?? '_', isFresh: false });
      const signed = await verify(saml, { inspection, expected, certificates: valid }, checks);
      try {
        return readAssertion(signed, expected, checks);
      } catch (error) {
        if (error instanceof XmlRefusal) return checks.fail('response', error.message);
        throw error;
      }
    },
  };
}

function createSaml(
  { ssoUrl, entityId }: IdpMetadata,
  certificates: string[],
  provider: ServiceProvider,
  { requestId, isFresh }: { requestId: string; isFresh: boolean },
): SAML {
  return new SAML({
    idpCert: certificates,
    issuer: provider.entityId,
    callbackUrl: provider.acsUrl,
    entryPoint: ssoUrl,
    idpIssuer: entityId,
    audience: provider.entityId,
    // Either the response or the assertion is signed; one valid signature is always required.
    wantAssertionsSigned: false,
    wantAuthnResponseSigned: false,
    // The signed part is compared with this browser's transaction instead.
    validateInResponseTo: ValidateInResponseTo.never,
    acceptedClockSkewMs: TOLERANCE_MS,
    identifierFormat: null,
    disableRequestedAuthnContext: true,
    forceAuthn: isFresh,
    generateUniqueId: () => requestId,
  });
}

interface Verification {
  inspection: ResponseInspection;
  expected: { audience: string };
  certificates: readonly string[];
}

/**
 * Returns the signed assertion. The library throws various errors for broken input; the recorded checks show what was
 * verified.
 */
async function verify(
  saml: SAML,
  { inspection, expected, certificates }: Verification,
  checks: SsoChecks,
): Promise<string> {
  const SAMLResponse = Buffer.from(inspection.xml, 'utf8').toString('base64');
  const { audiences, period, signer } = readStatedFacts(inspection);
  const signature = [
    signer === undefined ? 'a key without certificate' : describeFingerprint(signer),
    certificates.map(describeCertificate).join(' or '),
  ] as const;
  try {
    const { profile } = await saml.validatePostResponseAsync({ SAMLResponse });
    const assertion = profile?.getAssertionXml?.();
    if (assertion === undefined) return checks.fail('signature', 'no signed assertion', 'one');
    checks.pass('signature', ...signature);
    return assertion;
  } catch (error) {
    if (error instanceof SsoRefusal) throw error;
    const message = error instanceof Error ? error.message : '';
    if (/audience/i.test(message))
      return checks.fail('audience', audiences.join(', ') || 'none', expected.audience);
    if (/expired|not yet valid|too old|NotOnOrAfter|NotBefore/.test(message))
      return checks.fail('time', period, new Date().toISOString());
    // The certificate is known, so the content was changed; reading metadata again would not help.
    const isKnown = certificates.some((pem) => fingerprintOf(pem) === signer);
    if (isKnown) return checks.fail('signature', `${signature[0]}, but other content`, signature[1]);
    return checks.failKey(...signature);
  }
}

const describeFingerprint = (fingerprint: string): string => `certificate ${fingerprint.slice(0, 16)}…`;
const describeCertificate = (pem: string): string => describeFingerprint(fingerprintOf(pem));
