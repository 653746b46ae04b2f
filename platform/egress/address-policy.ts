import ipaddr from 'ipaddr.js';
import { type Address, isCidr, parseAddress } from '../network.ts';

/** Decides which addresses the service may connect to on behalf of customers. */
export interface AddressPolicy {
  /**
   * Returns why the address is not allowed; null if it is allowed. Accepts the formats that sockets and resolvers report:
   * `10.0.0.1`, `::ffff:10.0.0.1`, `fe80::1%eth0`.
   */
  findRefusal(address: string): string | null;
}

/** Azure's metadata service for virtual machines, although the address is in a public range. */
const METADATA_ADDRESSES = new Set(['168.63.129.16']);
/** RFC 6052: the well-known prefix embeds an IPv4 address in the last 32 bits. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');
/** RFC 3056: 6to4 embeds an IPv4 address in bits 16 to 47. */
const SIX_TO_FOUR = ipaddr.IPv6.parseCIDR('2002::/16');
/** IANA's allocation for global unicast; every other IPv6 block is reserved. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * @param allow CIDRs that are allowed although they are not public.
 * @throws Error for an invalid CIDR.
 */
export function createAddressPolicy(allow: string[]): AddressPolicy {
  const allowed = allow.map((cidr) => {
    if (!isCidr(cidr)) throw new Error(`${cidr} is not a CIDR range`);
    return ipaddr.parseCIDR(cidr);
  });
  return {
    findRefusal(text) {
      const address = parse(text);
      if (!address) return `${text.slice(0, 100)} is not an IP address`;
      if (allowed.some((range) => contains(range, address))) return null;
      const kind = findSpecialUse(address);
      return kind ? `${address.toString()} is not a public address (${kind})` : null;
    },
  };
}

function parse(text: string): Address | null {
  const withoutZone = text.replace(/%.*$/, '').replace(/^\[(.*)\]$/, '$1');
  const address = parseAddress(withoutZone);
  return address && unwrap(address);
}

/** Returns the IPv4 address embedded in a mapped, translated or tunneled IPv6 address; other addresses unchanged. */
function unwrap(address: Address): Address {
  if (!(address instanceof ipaddr.IPv6)) return address;
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  const bytes = address.toByteArray();
  if (address.match(NAT64)) return new ipaddr.IPv4(bytes.slice(12));
  if (address.match(SIX_TO_FOUR)) return new ipaddr.IPv4(bytes.slice(2, 6));
  return address;
}

function contains([base, bits]: [Address, number], address: Address): boolean {
  return base.kind() === address.kind() && address.match(base, bits);
}

/** Returns the special purpose of an address (RFC 6890), or null if it is public. */
function findSpecialUse(address: Address): string | null {
  if (METADATA_ADDRESSES.has(address.toString())) return 'metadata';
  const range = address.range();
  if (range !== 'unicast') return range;
  return address instanceof ipaddr.IPv6 && !address.match(GLOBAL_UNICAST) ? 'reserved' : null;
}
