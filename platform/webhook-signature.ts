import { createHmac } from 'node:crypto';

export interface UnsignedWebhook {
  /** `whsec_` followed by 32 random bytes in base64. */
  secret: string;
  /** The secret before a rotation, which stays valid during the overlap. */
  previousSecret?: string;
  eventId: string;
  /** Time of this attempt. Receivers reject old timestamps, so each attempt has its own signature. */
  timestampSeconds: number;
  /** The request body, exactly as sent. */
  body: string;
}

/**
 * The signature headers of a webhook: the specification's pair (section "Webhook signatures"), whose key is the whole
 * `whsec_` value, and those of Standard Webhooks, whose key is the decoded bytes. Existing libraries verify the latter.
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
