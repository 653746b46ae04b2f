import { randomBytes } from 'node:crypto';
import type { SecretBox } from '../../platform/crypto.ts';
import type { WebhookEndpoint } from './endpoint.entity.ts';

/** The signing secret of a new endpoint: 32 random bytes in the form Standard Webhooks names. */
export function createEndpointSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** Binds a sealed secret to its endpoint: copied to another row it does not open. */
export function secretContext(endpointId: string): string {
  return `webhook-endpoint/${endpointId}`;
}

/** What a delivery made now is signed with: the secret, and the one before while a rotation's overlap lasts. */
export function secretsOf(
  endpoint: Pick<WebhookEndpoint, 'id' | 'secret' | 'previousSecret' | 'previousSecretExpiresAt'>,
  secretBox: Pick<SecretBox, 'open'>,
): { secret: string; previousSecret?: string } {
  const open = (sealed: Uint8Array) => secretBox.open(sealed, secretContext(endpoint.id));
  const { previousSecret, previousSecretExpiresAt } = endpoint;
  const overlaps = previousSecret && previousSecretExpiresAt && previousSecretExpiresAt > new Date();
  return {
    secret: open(endpoint.secret),
    ...(overlaps ? { previousSecret: open(previousSecret) } : {}),
  };
}
