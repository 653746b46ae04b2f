import { BlockList, isIP } from 'node:net';
import { AppError } from '../../platform/errors.ts';

/**
 * Whether an address lies in one of the ranges. IPv4 addresses in IPv6 form (`::ffff:192.0.2.1`) count as IPv4. An empty
 * list allows every address.
 *
 * @param ranges CIDRs as {@link isCidr} accepts them.
 */
export function isAddressAllowed(ip: string, ranges: readonly string[]): boolean {
  if (ranges.length === 0) return true;
  const address = ip.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '');
  const family = isIP(address);
  if (family === 0) return false;
  const list = new BlockList();
  for (const range of ranges) {
    const { network, prefix } = splitCidr(range);
    list.addSubnet(network, prefix, isIP(network) === 4 ? 'ipv4' : 'ipv6');
  }
  return list.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

/** Whether a text is an address or a CIDR range (RFC 4632 section 3.1, RFC 4291 section 2.3). */
export function isCidr(text: string): boolean {
  const { network, prefix } = splitCidr(text);
  const family = isIP(network);
  if (family === 0 || network.includes('%')) return false;
  return Number.isInteger(prefix) && prefix >= 0 && prefix <= (family === 4 ? 32 : 128);
}

function splitCidr(text: string): { network: string; prefix: number } {
  const slash = text.indexOf('/');
  const network = slash === -1 ? text : text.slice(0, slash);
  if (slash !== -1) {
    const prefix = text.slice(slash + 1);
    return { network, prefix: /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN };
  }
  return { network, prefix: isIP(network) === 4 ? 32 : 128 };
}

/** The error for a request from an address outside the ranges that a key or an organization allows. */
export function addressNotAllowed(owner: 'key' | 'organization'): AppError {
  return new AppError('policy_violation', {
    detail: `The ${owner} does not accept requests from this address.`,
    fix: 'Call from an allowed address, or ask an administrator of the organization to change allowed_cidrs.',
    extensions: { policy: 'allowed_cidrs' },
  });
}
