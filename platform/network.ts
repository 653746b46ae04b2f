import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

export type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** IPv6 customers get at least a /64 (RFC 6177), so the limit applies to the first four groups of an address. */
const IPV6_NETWORK_PARTS = 4;

/**
 * Parses an address in the forms that sockets and resolvers report. Returns null for any other text: `ipaddr.js` also
 * accepts `127.1`, `0x7f000001` and `010.0.0.1`, which it reads as 8.0.0.1.
 */
export function parseAddress(text: string): Address | null {
  return isIP(text) === 0 ? null : ipaddr.parse(text);
}

/** The network that limits apply to: an IPv4 address, or the /64 of an IPv6 address. */
export function networkOf(address: string): string {
  if (isIP(address) === 0) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6
    ? parsed.parts.slice(0, IPV6_NETWORK_PARTS).join(':')
    : parsed.toString();
}

/** Whether a text is an address or a CIDR range (RFC 4632 section 3.1, RFC 4291 section 2.3). */
export function isCidr(text: string): boolean {
  const { network, prefix } = splitCidr(text);
  const family = isIP(network);
  if (family === 0 || network.includes('%')) return false;
  return Number.isInteger(prefix) && prefix >= 0 && prefix <= (family === 4 ? 32 : 128);
}

/** The prefix is NaN if it is not a decimal number without leading zeros: some programs read those as octal. */
export function splitCidr(text: string): { network: string; prefix: number } {
  const slash = text.indexOf('/');
  if (slash === -1) return { network: text, prefix: isIP(text) === 4 ? 32 : 128 };
  const prefix = text.slice(slash + 1);
  const isDecimal = /^(?:0|[1-9]\d{0,2})$/.test(prefix);
  return { network: text.slice(0, slash), prefix: isDecimal ? Number(prefix) : Number.NaN };
}
