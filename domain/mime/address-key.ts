import { domainToASCII } from 'node:url';

/** A domain has at least two labels, so an entry cannot be a top-level domain. */
const DOMAIN_PATTERN = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const MAX_DOMAIN_CHARACTERS = 253;
const MAX_LOCAL_OCTETS = 64;
/** No spaces, no control characters, and no characters that occur only in quoted local parts or address lists. */
const LOCAL_PART_PATTERN = /^[^\s\p{Cc}"(),:;<>@[\\\]]+$/u;

/**
 * The normalized form in which suppressions and list entries are stored and compared: lower case, the domain in its
 * ASCII form (RFC 5890) without a trailing dot. RFC 5321 section 2.4 allows case-sensitive local parts, but no relevant
 * mail system uses them. Plus tags are kept, because they make a different address.
 *
 * @returns null if the text is not an address.
 */
export function toAddressKey(address: string): string | null {
  const at = address.lastIndexOf('@');
  const local = address.slice(0, Math.max(0, at)).normalize('NFC').toLowerCase();
  const domain = toDomainKey(address.slice(at + 1));
  if (domain === null || !LOCAL_PART_PATTERN.test(local) || Buffer.byteLength(local) > MAX_LOCAL_OCTETS)
    return null;
  return `${local}@${domain}`;
}

/** The normalized form of a domain: `Bücher.example.` becomes `xn--bcher-kva.example`. Null if it is not a domain. */
export function toDomainKey(domain: string): string | null {
  // `domainToASCII` parses a URL host: it would decode escapes and read a number as an IP address.
  if (/[%/:?#@\s\\[\]]/.test(domain)) return null;
  const ascii = domainToASCII(domain.replace(/\.$/, ''));
  return ascii.length <= MAX_DOMAIN_CHARACTERS && DOMAIN_PATTERN.test(ascii) && !/\.\d+$/.test(ascii)
    ? ascii
    : null;
}

/** The normalized form of a list entry: an address, or a domain with its subdomains. Null if it is neither. */
export function toListEntryKey(entry: string): string | null {
  return entry.includes('@') ? toAddressKey(entry) : toDomainKey(entry);
}
