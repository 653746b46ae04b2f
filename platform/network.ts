import ipaddr from 'ipaddr.js';

/** IPv6 customers get at least a /64 (RFC 6177), so the limit applies to the first four groups of an address. */
const IPV6_NETWORK_PARTS = 4;

/** The network that limits apply to: an IPv4 address, or the /64 of an IPv6 address. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6
    ? parsed.parts.slice(0, IPV6_NETWORK_PARTS).join(':')
    : parsed.toString();
}
