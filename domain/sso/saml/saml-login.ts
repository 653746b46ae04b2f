import { isId } from '../../../platform/ids.ts';
import type { LoginSecrets } from '../begin-login.ts';
import { checkFreshness } from '../check-identity.ts';
import type { KeyRenewal } from '../key-renewal.ts';
import { createSsoChecks, type SsoChecks, SsoRefusal, ssoFailed, UnknownKey } from '../sso-checks.ts';
import type { SsoSettings } from '../sso-settings.ts';
import type { UsedSsoTransaction } from '../sso-transactions.ts';
import type { SamlIdentity } from './saml-assertion.ts';
import type { SamlClient, ServiceProvider } from './saml-client.ts';
import { decodeResponse, type ResponseInspection, readStatedFacts } from './saml-response.ts';

export interface SamlLoginOptions {
  saml: SamlClient;
  keyRenewal: KeyRenewal;
}

/** A response, and the address that received it. */
export interface ReceivedResponse {
  inspection: ResponseInspection;
  /** The id in the address that received it; null for the address that all configurations share. */
  serviceProviderId: string | null;
}

/** @throws AppError `sso_failed`. */
export function decodeSamlResponse(samlResponse: string): ResponseInspection {
  try {
    return decodeResponse(samlResponse, createSsoChecks());
  } catch (error) {
    throw error instanceof SsoRefusal ? ssoFailed(error.check) : error;
  }
}

/** Checks the answer to a request of this service. @throws SsoRefusal */
export async function readSamlAnswer(
  options: SamlLoginOptions,
  { settings, transaction }: { settings: SsoSettings; transaction: UsedSsoTransaction<LoginSecrets> },
  { inspection, serviceProviderId }: ReceivedResponse,
  checks: SsoChecks,
): Promise<SamlIdentity> {
  const { saml } = options;
  const received = serviceProviderId ?? settings.serviceProviderId;
  const [seen, own] = [received, settings.serviceProviderId].map((id) => saml.serviceProvider(id).acsUrl);
  if (seen !== own) checks.fail('destination', seen, own);
  const provider = addressed(saml, settings, serviceProviderId);
  const { requestId } = transaction.secrets;
  const identity = await readWithNewKeys(options, settings, { inspection, provider, requestId }, checks);
  checkFreshness(transaction, identity.authenticatedAt, checks);
  return identity;
}

/** Checks an answer without a request, if the configuration allows such answers. @throws SsoRefusal */
export async function readUnrequestedAnswer(
  options: SamlLoginOptions,
  settings: SsoSettings,
  { inspection, serviceProviderId }: ReceivedResponse,
  checks: SsoChecks,
): Promise<SamlIdentity> {
  if (!settings.allowIdpInitiated)
    checks.fail('idp_initiated', 'no InResponseTo', 'the answer to a request of this service');
  const provider = addressed(options.saml, settings, serviceProviderId);
  return readWithNewKeys(options, settings, { inspection, provider, requestId: null }, checks);
}

/** Finds the configuration that an unrequested answer is meant for, by address or audience, never by issuer. */
export function findAddressee(
  saml: SamlClient,
  { inspection, serviceProviderId }: ReceivedResponse,
): string | undefined {
  const { audiences, inResponseTo } = readStatedFacts(inspection);
  // This answers a request that this browser did not make, or made too long ago.
  if (inResponseTo !== undefined) return undefined;
  const audience = serviceProviderId === null && audiences.length === 1 ? audiences[0] : undefined;
  const id = serviceProviderId ?? (audience === undefined ? undefined : saml.serviceProviderIdOf(audience));
  return id !== undefined && isId('ssoConfiguration', id) ? id : undefined;
}

/**
 * The service as the identity provider addressed it: by the address of the configuration, or the one that all configurations
 * share.
 */
function addressed(
  saml: SamlClient,
  { serviceProviderId: id }: SsoSettings,
  receivedAt: string | null,
): ServiceProvider {
  const own = saml.serviceProvider(id);
  return receivedAt === null ? { ...own, acsUrl: saml.sharedAcsUrl } : own;
}

/** Reads a response once more if it is signed with a key that is missing in the stored metadata. */
async function readWithNewKeys(
  { saml, keyRenewal }: SamlLoginOptions,
  settings: SsoSettings,
  answer: Parameters<SamlClient['readAnswer']>[1],
  checks: SsoChecks,
): Promise<SamlIdentity> {
  const before = checks.all.length;
  try {
    return await saml.readAnswer(settings.idpMetadataXml, answer, checks);
  } catch (error) {
    const renewed = error instanceof UnknownKey ? await keyRenewal.renewMetadata(settings) : undefined;
    if (renewed === undefined) throw error;
    checks.restart(before);
    return saml.readAnswer(renewed, answer, checks);
  }
}
