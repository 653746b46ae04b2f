import { createHmac } from 'node:crypto';

export interface UnsignedWebhook {
  /** `whsec_` and the base64 of 32 random bytes. */
  secret: string;
  /** The secret before a rotation, while receivers may still hold it. */
  previousSecret?: string;
  eventId: string;
  /** When this attempt is sent: receivers refuse old ones, so each attempt is signed anew. */
  timestampSeconds: number;
  /** Exactly what is sent. */
  body: string;
}

/**
 * Headers a receiver verifies an event by: the specification's pair ("Webhook signatures"), whose key is the whole
 * `whsec_` value, and the trio of Standard Webhooks, whose key is the bytes it encodes, so that existing libraries work.
 */
export function signWebhook(webhook: UnsignedWebhook): Record<string, string> {
  const { secret, previousSecret, eventId, timestampSeconds } = webhook;
  const secrets = previousSecret === undefined ? [secret] : [secret, previousSecret];
  return {
    'x-service-timestamp': String(timestampSeconds),
    'x-service-signature': serviceSignature(secret, webhook),
    ...(previousSecret === undefined
      ? {}
      : { 'x-service-signature-previous': serviceSignature(previousSecret, webhook) }),
    'webhook-id': eventId,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': secrets.map((key) => `v1,${standardSignature(key, webhook)}`).join(' '),
  };
}

function serviceSignature(secret: string, { timestampSeconds, body }: UnsignedWebhook): string {
  return createHmac('sha256', secret).update(`${timestampSeconds}.${body}`).digest('hex');
}

function standardSignature(secret: string, { eventId, timestampSeconds, body }: UnsignedWebhook): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return createHmac('sha256', key).update(`${eventId}.${timestampSeconds}.${body}`).digest('base64');
}
