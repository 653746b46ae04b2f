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
