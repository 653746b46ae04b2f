import ipaddr from 'ipaddr.js';

/** IPv6 customers get at least a /64 (RFC 6177), so the limit applies to the first four groups of an address. */
const IPV6_NETWORK_PARTS = 4;

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

/** The network that limits apply to: an IPv4 address, or the /64 of an IPv6 address. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6
    ? parsed.parts.slice(0, IPV6_NETWORK_PARTS).join(':')
    : parsed.toString();
}
