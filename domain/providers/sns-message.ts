import { createVerify, X509Certificate } from 'node:crypto';
import { parseJson } from './json-fields.ts';

/**
 * An Amazon SNS message (developer guide, "Parsing Amazon SNS message formats"). The AWS SDK does not verify
 * signatures, and `sns-validator` fetches certificates outside of the egress policy and does not check their validity
 * period.
 */
export interface SnsMessage {
  Type: 'Notification' | 'SubscriptionConfirmation' | 'UnsubscribeConfirmation';
  MessageId: string;
  TopicArn: string;
  Message: string;
  Timestamp: string;
  SignatureVersion: string;
  Signature: string;
  SigningCertURL: string;
  Subject?: string;
  SubscribeURL?: string;
  Token?: string;
}

const TYPES = ['Notification', 'SubscriptionConfirmation', 'UnsubscribeConfirmation'];
const REQUIRED_FIELDS = [
  'MessageId',
  'TopicArn',
  'Message',
  'Timestamp',
  'SignatureVersion',
  'Signature',
  'SigningCertURL',
];

/** @returns null if the body is not an SNS message. */
export function parseSnsMessage(body: unknown): SnsMessage | null {
  const value = typeof body === 'string' ? parseJson(body) : body;
  if (typeof value !== 'object' || value === null) return null;
  const fields = value as Record<string, unknown>;
  if (!TYPES.includes(String(fields.Type))) return null;
  if (!REQUIRED_FIELDS.every((name) => typeof fields[name] === 'string')) return null;
  const optional = ['Subject', 'SubscribeURL', 'Token'];
  if (
    !optional.every(
      (name) => fields[name] === undefined || fields[name] === null || typeof fields[name] === 'string',
    )
  )
    return null;
  return fields as unknown as SnsMessage;
}

/** Whether the URL is an SNS certificate. Otherwise, anyone could sign with their own certificate. */
export function isSnsCertificateUrl(text: string): boolean {
  const url = URL.parse(text);
  return (
    isSnsUrl(url) &&
    /^\/SimpleNotificationService-[0-9a-f]{8,64}\.pem$/.test(url.pathname) &&
    url.search === ''
  );
}

/** Whether the URL confirms an SNS subscription. */
export function isSnsSubscribeUrl(text: string): boolean {
  const url = URL.parse(text);
  return isSnsUrl(url) && url.searchParams.get('Action') === 'ConfirmSubscription';
}

function isSnsUrl(url: URL | null): url is URL {
  return (
    url !== null &&
    url.protocol === 'https:' &&
    url.port === '' &&
    url.username === '' &&
    url.password === '' &&
    /^sns\.[a-z0-9-]{3,40}\.amazonaws\.com(?:\.cn)?$/.test(url.hostname)
  );
}

const SIGNED_FIELDS = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  SubscriptionConfirmation: [
    'Message',
    'MessageId',
    'SubscribeURL',
    'Timestamp',
    'Token',
    'TopicArn',
    'Type',
  ],
  UnsubscribeConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
} as const;

/** Builds the string to sign: names and values, one per line; the subject only if present. */
export function buildSnsSigningString(message: SnsMessage): string {
  return SIGNED_FIELDS[message.Type]
    .filter((name) => typeof message[name] === 'string')
    .map((name) => `${name}\n${message[name]}\n`)
    .join('');
}

/** Whether the certificate is valid now and its key signed the message (version 1: SHA-1, version 2: SHA-256). */
export function isSignedBy(message: SnsMessage, certificatePem: string, now: Date): boolean {
  const algorithm = { '1': 'RSA-SHA1', '2': 'RSA-SHA256' }[message.SignatureVersion];
  if (!algorithm) return false;
  try {
    const certificate = new X509Certificate(certificatePem);
    const isValidNow =
      Date.parse(certificate.validFrom) <= now.getTime() && now.getTime() <= Date.parse(certificate.validTo);
    const verify = createVerify(algorithm).update(buildSnsSigningString(message), 'utf8');
    return isValidNow && verify.verify(certificate.publicKey, message.Signature, 'base64');
  } catch {
    return false;
  }
}
