import { domainToASCII } from 'node:url';

/** The simplest domain an entry may name has two labels: a whole top-level domain is never meant. */
const DOMAIN_PATTERN = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const MAX_DOMAIN_CHARACTERS = 253;
const MAX_LOCAL_OCTETS = 64;
/** Neither a space nor a control character, nor what only a quoted local part or a list of addresses holds. */
const LOCAL_PART_PATTERN = /^[^\s\p{Cc}"(),:;<>@[\\\]]+$/u;

/**
 * The one spelling under which suppressions and list entries are kept and compared: lower case, the domain in its
 * ASCII form (RFC 5890) without a final dot. Mail systems may tell `Ada@` from `ada@` (RFC 5321 section 2.4); none that
 * matters does. A plus-tag stays: it is another address.
 *
 * @returns null for what is no address.
 */
export function addressKey(address: string): string | null {
  const at = address.lastIndexOf('@');
  const local = address.slice(0, Math.max(0, at)).normalize('NFC').toLowerCase();
  const domain = domainKey(address.slice(at + 1));
  if (domain === null || !LOCAL_PART_PATTERN.test(local) || Buffer.byteLength(local) > MAX_LOCAL_OCTETS)
    return null;
  return `${local}@${domain}`;
}

/** The same of a domain: `Bücher.example.` is `xn--bcher-kva.example`. */
export function domainKey(domain: string): string | null {
  // An URL's host may be more than a domain: the parser would decode escapes, and take a number for an IP address.
  if (/[%/:?#@\s\\[\]]/.test(domain)) return null;
  const ascii = domainToASCII(domain.replace(/\.$/, ''));
  return ascii.length <= MAX_DOMAIN_CHARACTERS && DOMAIN_PATTERN.test(ascii) && !/\.\d+$/.test(ascii)
    ? ascii
    : null;
}

/** What a list entry names: an address, or a domain with all below it. Null: neither. */
export function listEntryKey(entry: string): string | null {
  return entry.includes('@') ? addressKey(entry) : domainKey(entry);
}
