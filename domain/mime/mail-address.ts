import { domainToASCII } from 'node:url';

/** An address object (specification, "Address object"). The case of `email` is preserved. */
export interface MailAddress {
  email: string;
  name?: string;
}

/** RFC 5321 section 4.5.3.1: maximum octets of a local part, and of a path without angle brackets. */
const MAX_LOCAL_OCTETS = 64;
const MAX_ADDRESS_OCTETS = 254;

const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
const DOT_STRING = new RegExp(`^${ATOM}(?:\\.${ATOM})*$`);
/** Printable ASCII in quotes. A backslash escapes quotes and backslashes. */
const QUOTED_STRING = /^"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\[\x20-\x7e])*"$/;
const CONTROL_CHARACTER = /\p{Cc}/u;
const DOMAIN_LABEL = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

/**
 * Checks an address against the mailbox syntax of RFC 5321 section 4.1.2. Rejects two forms that the RFC allows:
 * address literals, which in practice are mistakes, and quoted local parts, which some relays change or reject.
 *
 * @returns an explanation for the caller, or undefined if the address is valid.
 */
export function findAddressProblem(address: string): string | undefined {
  // Checked first, for a clear error message: a line break is a header injection or a pasted list.
  if (CONTROL_CHARACTER.test(address)) return 'must not contain control characters, such as line breaks';
  const at = address.lastIndexOf('@');
  if (at < 1) return 'must have the form name@domain';
  if (/[^\x20-\x7e]/.test(address))
    return 'must be ASCII: SMTPUTF8 addresses are not supported; write the domain as xn--…';
  const local = address.slice(0, at);
  const domain = address.slice(at + 1);
  if (address.length > MAX_ADDRESS_OCTETS) return `must not be longer than ${MAX_ADDRESS_OCTETS} characters`;
  if (local.length > MAX_LOCAL_OCTETS)
    return `must not have more than ${MAX_LOCAL_OCTETS} characters before the @`;
  if (QUOTED_STRING.test(local))
    return 'must not be quoted before the @: some relays change or reject quoted local parts';
  if (!DOT_STRING.test(local)) return 'has invalid characters before the @';
  if (domain.startsWith('[')) return 'must have a domain, not an IP address';
  if (!domain.split('.').every((label) => DOMAIN_LABEL.test(label))) return 'has an invalid domain';
  return undefined;
}

/** The domain of an address, in lower case. */
export function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1).toLowerCase();
}

/** A domain has at least two labels, so an entry cannot be a top-level domain. */
const DOMAIN_PATTERN = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const MAX_DOMAIN_CHARACTERS = 253;
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

/** What is in quotes or angle brackets may contain separators, but ends with its line. */
const PART = /(?:"(?:[^"\\\r\n]|\\.)*"?|<[^<>\r\n]*>?|[^,;\r\n])+/g;

/**
 * The parts of a list of addresses as people type it, `Ada <ada@people.example>, bob@people.example`, separated by commas,
 * semicolons or lines. None is empty; whether a part is an address is for the caller to check.
 */
export const splitAddresses = (text: string): string[] =>
  (text.match(PART) ?? []).map((part) => part.trim()).filter((part) => part !== '');
