import type { InboundRoute, TenantRoute } from '../domain/inbound/inbound-routes.ts';
import { type Holder, networkHolder, organizationHolder } from '../platform/concurrency/fair-share.ts';
import { networkOf } from '../platform/network.ts';
import { SmtpError } from './smtp-data.ts';

/** Whether a client address has too many open connections, including the new one. */
export function exceedsConnectionLimit(
  connections: Iterable<{ remoteAddress: string }>,
  address: string,
  maxConnections: number,
): boolean {
  const network = networkOf(address);
  let open = 0;
  for (const { remoteAddress } of connections) if (networkOf(remoteAddress) === network) open += 1;
  return open > maxConnections;
}

/** A large message counts for its network, and for the inboxes and organizations that get it. */
export function largeMessageHolders(
  clientIp: string,
  routes: readonly (Pick<TenantRoute, 'organizationId' | 'inboxId'> | InboundRoute)[],
): Holder[] {
  const tenants = routes.flatMap((route) => ('inboxId' in route ? [route] : []));
  const inboxes = new Set(tenants.map(({ inboxId }) => inboxId));
  const organizations = new Set(tenants.map(({ organizationId }) => organizationId));
  return [
    networkHolder(clientIp),
    ...[...inboxes].map((id): Holder => ({ kind: 'inbox', id })),
    ...[...organizations].map(organizationHolder),
  ];
}

export function tooManyConnections(): SmtpError {
  return new SmtpError(421, '4.7.0 Too many connections from your address, try again later', 'too_busy');
}
