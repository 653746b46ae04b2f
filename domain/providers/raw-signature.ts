import { createHmac, timingSafeEqual } from 'node:crypto';
import { AppError } from '../../platform/errors.ts';

/** The signed envelope of a message that another server submits. */
export interface RawEnvelope {
  mailFrom: string;
  rcptTo: string[];
  clientIp: string;
  helo: string;
  /** The server's id for the message; may be empty. */
  id: string;
}

export interface RawSignature {
  /** Seconds since 1970. */
  timestamp: string;
  /** SHA-256 of the message, in hex. */
  contentSha256: string;
  /** `v1=` and the HMAC-SHA256 in hex. */
  signature: string;
}

const MAX_CLOCK_SKEW_SECONDS = 300;

/**
 * Builds the string to sign: `v1`, timestamp, sender, recipients, client IP, HELO, id and content hash, one per line.
 * Values must not contain line breaks, so that no two envelopes produce the same string.
 */
function buildSigningString(envelope: RawEnvelope, signed: Omit<RawSignature, 'signature'>): string {
  const { mailFrom, rcptTo, clientIp, helo, id } = envelope;
  return ['v1', signed.timestamp, mailFrom, rcptTo.join(','), clientIp, helo, id, signed.contentSha256].join(
    '\n',
  );
}

export function signRawMail(
  secret: string,
  envelope: RawEnvelope,
  signed: Omit<RawSignature, 'signature'>,
): string {
  return `v1=${createHmac('sha256', secret).update(buildSigningString(envelope, signed)).digest('hex')}`;
}

/** @throws AppError `unauthenticated` for a wrong signature or a clock difference of more than 5 minutes. */
export function verifyRawSignature(
  secret: string,
  envelope: RawEnvelope,
  signature: RawSignature,
  now: Date,
): void {
  const expected = Buffer.from(signRawMail(secret, envelope, signature));
  const received = Buffer.from(signature.signature);
  if (expected.length !== received.length || !timingSafeEqual(expected, received))
    throw invalidSignature('is wrong');
  const ageSeconds = Math.abs(now.getTime() / 1000 - Number(signature.timestamp));
  if (!(ageSeconds <= MAX_CLOCK_SKEW_SECONDS))
    throw invalidSignature('is more than 5 minutes old or in the future');
}

export function invalidSignature(reason: string): AppError {
  return new AppError('unauthenticated', {
    detail: `The signature of the message ${reason}.`,
    fix: 'Sign the string described in docs/mail-servers.md with PROVIDER_RAW_SECRET. Hash the exact bytes that you send, and sign each request separately.',
  });
}
