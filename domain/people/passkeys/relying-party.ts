import { isIP } from 'node:net';
import { AppError } from '../../../platform/errors.ts';

/** This service, as WebAuthn knows it. Credentials are bound to the id and work only on pages of the origin. */
export interface RelyingParty {
  id: string;
  origin: string;
  /** Shown by authenticators. */
  name: string;
}

/** @returns null if the URL names its host by an address, which cannot be an RP ID (WebAuthn section 5.1.2). */
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
