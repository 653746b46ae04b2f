import { generateSecret, generateURI, verify } from 'otplib';
import { renderSVG } from 'uqr';

/** Codes of the previous and the next step count, too: clocks differ, and people type slowly (RFC 6238 section 5.2). */
const TOLERANCE_SECONDS = 30;

export interface TotpSetup {
  /** Base32, for typing into an app. */
  secret: string;
  /** `otpauth://totp/…`, the content of the QR code. */
  uri: string;
  /** The QR code, a complete SVG image. */
  qrSvg: string;
}

/** Binds the sealed secret to its enrollment. */
export const totpContext = (enrollmentId: string): string => `mfa:${enrollmentId}`;

/** Creates a secret of 160 bits, as RFC 4226 section 4 recommends. */
export const createTotpSetup = (account: { issuer: string; label: string }): TotpSetup =>
  describeTotpSetup({ ...account, secret: generateSecret() });

/** What an app needs to take the secret. */
export function describeTotpSetup({
  secret,
  ...account
}: {
  issuer: string;
  label: string;
  secret: string;
}): TotpSetup {
  const uri = generateURI({ ...account, secret });
  return { secret, uri, qrSvg: renderSVG(uri) };
}

/**
 * Checks a code (RFC 6238).
 *
 * @param afterStep the last step that was accepted: each step is accepted once.
 * @returns the step of the code; null if the code is wrong, malformed or used.
 */
export async function findTotpStep(
  secret: string,
  code: string,
  afterStep: number | null,
): Promise<number | null> {
  const token = code.replace(/\s/g, '');
  if (!/^\d{6}$/.test(token)) return null;
  const result = await verify({
    secret,
    token,
    epochTolerance: TOLERANCE_SECONDS,
    ...(afterStep === null ? {} : { afterTimeStep: afterStep }),
  });
  return result.valid && 'timeStep' in result ? result.timeStep : null;
}
