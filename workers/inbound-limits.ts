import ipaddr from 'ipaddr.js';

/** IPv6 hands every customer a whole /64 (RFC 6177): an address of it says nothing. */
const IPV6_NETWORK_PARTS = 4;

/** Whether a client of this address has more connections open than it may, the one just made among them. */
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

function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6
    ? parsed.parts.slice(0, IPV6_NETWORK_PARTS).join(':')
    : parsed.toString();
}
