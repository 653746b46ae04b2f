import { randomBytes } from 'node:crypto';

/** The signing secret of a new endpoint: 32 random bytes in the form Standard Webhooks names. */
export function createEndpointSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** Binds a sealed secret to its endpoint: copied to another row it does not open. */
export function secretContext(endpointId: string): string {
  return `webhook-endpoint/${endpointId}`;
}
