/** RFC 5321 section 4.5.3.1: octets of a local part, and of a path without its angle brackets. */
const MAX_LOCAL_OCTETS = 64;
const MAX_ADDRESS_OCTETS = 254;

const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
const DOT_STRING = new RegExp(`^${ATOM}(?:\\.${ATOM})*$`);
/** Printable ASCII between quotes; quote and backslash only behind a backslash. */
const QUOTED_STRING = /^"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\[\x20-\x7e])*"$/;
const CONTROL_CHARACTER = /\p{Cc}/u;
const DOMAIN_LABEL = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

/**
 * What keeps an address from being a mailbox of RFC 5321 (section 4.1.2) that mail can be sent to, in words for its
 * writer; undefined where nothing does. Address literals are refused, as mail to a bare IP address is never meant, and
 * quoted local parts, which the RFC allows and warns of: they do not arrive as they were written.
 */
export function findAddressProblem(address: string): string | undefined {
  // First, and said as what it is: a line end is an attempt at another header, or a list pasted as one address.
  if (CONTROL_CHARACTER.test(address)) return 'must not hold control characters, such as line ends';
  const at = address.lastIndexOf('@');
  if (at < 1) return 'must be an address as name@domain';
  if (/[^\x20-\x7e]/.test(address))
    return 'must be ASCII: addresses of other characters (SMTPUTF8) are not sent to; write the domain as xn--…';
  const local = address.slice(0, at);
  const domain = address.slice(at + 1);
  if (address.length > MAX_ADDRESS_OCTETS) return `must not be longer than ${MAX_ADDRESS_OCTETS} characters`;
  if (local.length > MAX_LOCAL_OCTETS)
    return `must not have more than ${MAX_LOCAL_OCTETS} characters before the @`;
  if (QUOTED_STRING.test(local))
    return 'must be written without quotes before the @: relays change or refuse a quoted name on the way';
  if (!DOT_STRING.test(local)) return 'has characters before the @ that no address may have';
  if (domain.startsWith('[')) return 'must name a domain and not an IP address';
  if (!domain.split('.').every((label) => DOMAIN_LABEL.test(label))) return 'has a domain that is none';
  return undefined;
}
