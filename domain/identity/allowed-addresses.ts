import { BlockList, isIP } from 'node:net';
import { AppError } from '../../platform/errors.ts';
import { isCidr, splitCidr } from '../../platform/network.ts';

/**
 * Whether an address lies in one of the ranges. IPv4 addresses in IPv6 form (`::ffff:192.0.2.1`) count as IPv4. An empty
 * list allows every address.
 *
 * @param ranges CIDRs. A malformed range, which an earlier version may have stored, allows no address.
 */
export function isAddressAllowed(ip: string, ranges: readonly string[]): boolean {
  if (ranges.length === 0) return true;
  const address = ip.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '');
  const family = isIP(address);
  if (family === 0) return false;
  const list = new BlockList();
  for (const range of ranges.filter(isCidr)) {
    const { network, prefix } = splitCidr(range);
    list.addSubnet(network, prefix, isIP(network) === 4 ? 'ipv4' : 'ipv6');
  }
  return list.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

/**
 * Whether every address of a range lies in one of the ranges. An empty list allows every address. A malformed range contains
 * no range, and lies in none.
 */
export function isRangeWithin(range: string, ranges: readonly string[]): boolean {
  if (ranges.length === 0) return true;
  if (!isCidr(range)) return false;
  const { first, bits } = toBits(range);
  return ranges.filter(isCidr).some((other) => {
    const outer = toBits(other);
    const shift = BigInt(128 - outer.bits);
    return outer.bits <= bits && first >> shift === outer.first >> shift;
  });
}

/** The first address as 128 bits and the length of the prefix; IPv4 in its IPv6 form (RFC 4291 section 2.5.5.2). */
function toBits(range: string): { first: bigint; bits: number } {
  const { network, prefix } = splitCidr(range);
  if (isIP(network) === 4) return { first: 0xffff_0000_0000n | ipv4ToBits(network), bits: prefix + 96 };
  // The URL parser writes an IPv6 address without embedded IPv4 and without leading zeros.
  const [head = '', tail] = new URL(`http://[${network}]`).hostname.slice(1, -1).split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':'));
  const [before, after] = [groups(head), groups(tail ?? '')];
  const zeros = Array<string>(8 - before.length - after.length).fill('0');
  const first = [...before, ...zeros, ...after].reduce(
    (sum, group) => (sum << 16n) | BigInt(`0x${group}`),
    0n,
  );
  return { first, bits: prefix };
}

function ipv4ToBits(address: string): bigint {
  return address.split('.').reduce((sum, part) => (sum << 8n) | BigInt(part), 0n);
}

/** The error for a request from an address outside the ranges that a key or an organization allows. */
export function addressNotAllowed(owner: 'key' | 'organization'): AppError {
  return new AppError('policy_violation', {
    detail: `The ${owner} does not accept requests from this address.`,
    fix: 'Call from an allowed address, or ask an administrator of the organization to change allowed_cidrs.',
    extensions: { policy: 'allowed_cidrs' },
  });
}
