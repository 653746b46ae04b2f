import { isIP } from 'node:net';
import {
  type AuthenticationResponseJSON,
  type AuthenticatorTransport,
  generateAuthenticationOptions,
  generateRegistrationOptions,
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
  type RegistrationResponseJSON,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server';
import { decodeAttestationObject, decodeClientDataJSON, isoBase64URL } from '@simplewebauthn/server/helpers';
import { AppError } from '../../../platform/errors.ts';
import { WEBAUTHN_TIMEOUT_MS } from './webauthn-challenges.ts';

/** This service as a WebAuthn relying party. Credentials are bound to the id and work only on pages of the origin. */
export interface RelyingParty {
  id: string;
  origin: string;
  /** Shown by authenticators. */
  name: string;
}

/** @returns null if the host of the URL is an IP address, which cannot be an RP ID (WebAuthn section 5.1.2). */
export function relyingPartyOf(publicUrl: string): RelyingParty | null {
  const { hostname, origin } = new URL(publicUrl);
  return isIP(hostname.replace(/^\[|\]$/g, '')) ? null : { id: hostname, origin, name: hostname };
}

/** @throws AppError `feature_disabled`. */
export function requireRelyingParty(party: RelyingParty | null): RelyingParty {
  if (party) return party;
  throw new AppError('feature_disabled', {
    detail:
      'Passkeys are not available, because the service is configured with an address instead of a host name.',
    fix: 'Use an authenticator app, or ask the operator to set PUBLIC_URL to a URL with a host name.',
  });
}

export type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
};

/** COSE: EdDSA, ES256, RS256. */
const ALGORITHMS = [-8, -7, -257];
const TRANSPORTS = ['ble', 'hybrid', 'internal', 'nfc', 'usb'] as const;

/** A credential, as stored. */
export interface StoredCredential {
  credentialId: Uint8Array;
  transports: string[];
}

export interface NewCredential {
  credentialId: Buffer;
  /** COSE. */
  publicKey: Buffer;
  counter: number;
  transports: string[];
}

/** Options for `navigator.credentials.create()`: a discoverable credential with user verification. */
export function createRegistrationOptions(
  party: RelyingParty,
  {
    challenge,
    user,
    registered,
  }: {
    challenge: Uint8Array<ArrayBuffer>;
    user: { handle: Uint8Array; email: string; name: string | null };
    registered: StoredCredential[];
  },
): Promise<PublicKeyCredentialCreationOptionsJSON> {
  return generateRegistrationOptions({
    rpName: party.name,
    rpID: party.id,
    userName: user.email,
    userDisplayName: user.name ?? user.email,
    userID: new Uint8Array(user.handle),
    challenge,
    timeout: WEBAUTHN_TIMEOUT_MS,
    excludeCredentials: registered.map(describeCredential),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: ALGORITHMS,
  });
}

/** Options for `navigator.credentials.get()`. @param allowed undefined: any passkey of this service. */
export function createAssertionOptions(
  party: RelyingParty,
  { challenge, allowed }: { challenge: Uint8Array<ArrayBuffer>; allowed?: StoredCredential[] },
): Promise<PublicKeyCredentialRequestOptionsJSON> {
  return generateAuthenticationOptions({
    rpID: party.id,
    challenge,
    timeout: WEBAUTHN_TIMEOUT_MS,
    userVerification: 'required',
    ...(allowed === undefined ? {} : { allowCredentials: allowed.map(describeCredential) }),
  });
}

/** The challenge that a response claims to answer, base64url. Undefined for anything malformed. */
export function readChallenge({ response }: { response: { clientDataJSON: string } }): string | undefined {
  return attempt(() => {
    const { challenge } = decodeClientDataJSON(response.clientDataJSON);
    return typeof challenge === 'string' ? challenge : undefined;
  });
}

/** @returns undefined if the response is malformed or wrong in any respect. */
export async function verifyRegistration(
  party: RelyingParty,
  challenge: string,
  response: RegistrationResponseJSON,
): Promise<NewCredential | undefined> {
  if (isInForeignFrame(response) || !isWithoutCertificates(response)) return undefined;
  const verification = await verifyRegistrationResponse({
    response,
    expectedChallenge: challenge,
    expectedOrigin: party.origin,
    expectedRPID: party.id,
    requireUserVerification: true,
    supportedAlgorithmIDs: ALGORITHMS,
  }).catch(() => undefined);
  if (!verification?.verified) return undefined;
  const { id, publicKey, counter, transports = [] } = verification.registrationInfo.credential;
  return {
    credentialId: Buffer.from(id, 'base64url'),
    publicKey: Buffer.from(publicKey),
    counter,
    transports: TRANSPORTS.filter((transport) => transports.includes(transport)),
  };
}

/**
 * Checks everything but the counter and the user handle, which the caller compares with the database.
 *
 * @returns the signature counter; undefined if the response is malformed or wrong in any respect.
 */
export async function verifyAssertion(
  party: RelyingParty,
  challenge: string,
  response: AuthenticationResponseJSON,
  publicKey: Uint8Array,
): Promise<number | undefined> {
  if (isInForeignFrame(response)) return undefined;
  const verification = await verifyAuthenticationResponse({
    response,
    expectedChallenge: challenge,
    expectedOrigin: party.origin,
    expectedRPID: party.id,
    requireUserVerification: true,
    // The library compares the counter before it verifies the signature, so a stranger could fake a decreasing counter.
    credential: { id: response.id, publicKey: new Uint8Array(publicKey), counter: 0 },
  }).catch(() => undefined);
  return verification?.verified ? verification.authenticationInfo.newCounter : undefined;
}

/** Whether a page of another site showed this one in a frame. It may have tricked the person into clicking. */
function isInForeignFrame({ response }: { response: { clientDataJSON: string } }): boolean {
  const isForeign = attempt(() => {
    // The library checks these members only for assertions, and accepts `crossOrigin` without `topOrigin`.
    const clientData = decodeClientDataJSON(response.clientDataJSON) as unknown as Record<string, unknown>;
    return (clientData.crossOrigin ?? false) !== false || clientData.topOrigin !== undefined;
  });
  return isForeign ?? true;
}

/**
 * No attestation is requested, so a browser sends none, or the authenticator's own signature. Certificates are refused
 * unread: to validate them the library would fetch URLs that they name.
 */
function isWithoutCertificates({ response }: RegistrationResponseJSON): boolean {
  const isWithout = attempt(() => {
    const attestation = decodeAttestationObject(isoBase64URL.toBuffer(response.attestationObject));
    const format = attestation.get('fmt');
    return format === 'none' || (format === 'packed' && attestation.get('attStmt').get('x5c') === undefined);
  });
  return isWithout ?? false;
}

function describeCredential({ credentialId, transports }: StoredCredential): {
  id: string;
  transports: AuthenticatorTransport[];
} {
  return {
    id: Buffer.from(credentialId).toString('base64url'),
    transports: TRANSPORTS.filter((transport) => transports.includes(transport)),
  };
}

/** Undefined if it throws, as decoding does for malformed input. */
function attempt<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}
