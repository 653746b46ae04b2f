import { randomBytes } from 'node:crypto';
import type { SecretBox } from '../../platform/crypto.ts';
import type { SealedColumn } from '../../platform/sealed-column.ts';
import type { WebhookEndpoint } from './endpoint.entity.ts';

/** A new signing secret: 32 random bytes in the format of Standard Webhooks. */
export function createEndpointSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** Binds a sealed secret to its endpoint: it cannot be opened after being copied to another row. */
export function secretContext(endpointId: string): string {
  return `webhook-endpoint/${endpointId}`;
}

export const ENDPOINT_SECRETS: readonly SealedColumn[] = ['secret', 'previous_secret'].map((column) => ({
  table: 'webhook_endpoints',
  column,
  key: ['id'],
  context: ({ id }) => secretContext(String(id)),
}));

/** Until when the previous secret signs too; null outside of a rotation overlap. */
export function findOverlapEnd({
  previousSecret,
  previousSecretExpiresAt,
}: Pick<WebhookEndpoint, 'previousSecret' | 'previousSecretExpiresAt'>): Date | null {
  const overlaps = previousSecret && previousSecretExpiresAt && previousSecretExpiresAt > new Date();
  return overlaps ? previousSecretExpiresAt : null;
}

/** The secrets that sign a delivery now: the current one and, during a rotation overlap, the previous one. */
export function openSecrets(
  endpoint: Pick<WebhookEndpoint, 'id' | 'secret' | 'previousSecret' | 'previousSecretExpiresAt'>,
  secretBox: Pick<SecretBox, 'open'>,
): { secret: string; previousSecret?: string } {
  const open = (sealed: Uint8Array) => secretBox.open(sealed, secretContext(endpoint.id));
  const { previousSecret } = endpoint;
  const isOverlapping = previousSecret && findOverlapEnd(endpoint);
  return {
    secret: open(endpoint.secret),
    ...(isOverlapping ? { previousSecret: open(previousSecret) } : {}),
  };
}
