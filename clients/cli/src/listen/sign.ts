import { createHmac, randomBytes } from 'node:crypto';

/** A secret in the form of those of webhook endpoints. */
export const createSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

export interface Unsigned {
  secret: string;
  eventId: string;
  timestampSeconds: number;
  /** As it is sent. */
  body: string;
}

/** Both pairs of headers with which the service signs a webhook: Standard Webhooks, and its own. */
export function sign({ secret, eventId, timestampSeconds, body }: Unsigned): Record<string, string> {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const standard = createHmac('sha256', key)
    .update(`${eventId}.${timestampSeconds}.${body}`)
    .digest('base64');
  return {
    'webhook-id': eventId,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': `v1,${standard}`,
    'x-service-timestamp': String(timestampSeconds),
    'x-service-signature': createHmac('sha256', secret).update(`${timestampSeconds}.${body}`).digest('hex'),
  };
}
