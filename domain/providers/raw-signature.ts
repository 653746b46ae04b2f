import { createHmac, timingSafeEqual } from 'node:crypto';
import { AppError } from '../../platform/errors.ts';

/** What a server that hands a mail over says of it, and signs. */
export interface RawEnvelope {
  mailFrom: string;
  rcptTo: string[];
  clientIp: string;
  helo: string;
  /** What the server calls the mail; empty where it gives none. */
  id: string;
}

export interface RawSignature {
  /** Seconds since 1970. */
  timestamp: string;
  /** SHA-256 of the mail's bytes, in hex. */
  contentSha256: string;
  /** `v1=` and the HMAC-SHA256 in hex. */
  signature: string;
}

export const MAX_CLOCK_SKEW_SECONDS = 300;

/**
 * The string that is signed: `v1`, timestamp, sender, each recipient, client IP, HELO, id and content hash, one a line.
 * No value may hold a line break, so that no two envelopes make one string.
 */
export function buildSigningString(envelope: RawEnvelope, signed: Omit<RawSignature, 'signature'>): string {
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

/** @throws AppError `unauthenticated`: wrong signature, or a time more than 5 minutes off. */
export function verifyRawSignature(
  secret: string,
  envelope: RawEnvelope,
  given: RawSignature,
  now: Date,
): void {
  const expected = Buffer.from(signRawMail(secret, envelope, given));
  const presented = Buffer.from(given.signature);
  if (expected.length !== presented.length || !timingSafeEqual(expected, presented))
    throw invalidSignature('does not fit');
  const ageSeconds = Math.abs(now.getTime() / 1000 - Number(given.timestamp));
  if (!(ageSeconds <= MAX_CLOCK_SKEW_SECONDS))
    throw invalidSignature('is more than 5 minutes old, or from the future');
}

export function invalidSignature(what: string): AppError {
  return new AppError('unauthenticated', {
    detail: `The signature of the mail ${what}.`,
    fix: 'Sign the string docs/mail.md describes with PROVIDER_RAW_SECRET, over the bytes that are sent, each time anew.',
  });
}
