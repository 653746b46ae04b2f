import { isIP } from 'node:net';
import { domainToASCII, domainToUnicode } from 'node:url';
import { getDomain } from 'tldts';

/** DNS limits names to 253 characters, and the service publishes records below the domain. */
export const MAX_DOMAIN_LENGTH = 253 - '_agent-email-verification.'.length;

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** Characters allowed before the conversion to ASCII. Excludes URL syntax (`%61`, `/`, `@`, `[::1]`). */
const ALLOWED_CHARACTERS = /^[\p{L}\p{N}\p{M}.\u3002\uFF0E\uFF61-]+$/u;

/** Special-use top-level names without registrations (RFC 6761, RFC 6762, RFC 7686, RFC 9476). */
const NOT_REGISTRABLE = new Set(['alt', 'arpa', 'internal', 'invalid', 'local', 'localhost', 'onion']);

export type DomainNameProblem = 'malformed' | 'too_long' | 'address' | 'public_suffix';

/**
 * Normalizes a domain name: ASCII form of IDNA, lower case, no trailing dot.
 *
 * @returns the name, or the reason why customers cannot use this domain.
 */
export function parseDomainName(input: string): { name: string } | { problem: DomainNameProblem } {
  const unrooted = input.replace(/[.\u3002\uFF0E\uFF61]$/u, '');
  if (isIP(unrooted) !== 0) return { problem: 'address' };
  if (!ALLOWED_CHARACTERS.test(unrooted)) return { problem: 'malformed' };
  const name = domainToASCII(unrooted).toLowerCase();
  // `0x7f.1` and full-width digits become an IP address only after the conversion.
  if (isIP(name) !== 0) return { problem: 'address' };
  const labels = name.split('.');
  // `domainToUnicode` leaves invalid Punycode unchanged.
  const broken = domainToUnicode(name)
    .split('.')
    .some((label) => label.startsWith('xn--'));
  if (broken || !labels.every((label) => LABEL.test(label))) return { problem: 'malformed' };
  if (name.length > MAX_DOMAIN_LENGTH) return { problem: 'too_long' };
  const top = labels.at(-1) ?? '';
  if (/^\d+$/.test(top)) return { problem: 'malformed' };
  if (NOT_REGISTRABLE.has(top) || isPublicSuffix(name)) return { problem: 'public_suffix' };
  return { name };
}

/**
 * Whether a registry or a hosting platform assigns names below this one (publicsuffix.org). The check only reports
 * mistakes early: verification requires a record in the zone of the domain, which only its owner can publish.
 */
function isPublicSuffix(name: string): boolean {
  return getDomain(name, { allowPrivateDomains: true }) === null;
}

/** Whether `name` is `parent` or a subdomain of it. */
export function isWithinDomain(name: string, parent: string): boolean {
  const domain = parent.toLowerCase();
  return name === domain || name.endsWith(`.${domain}`);
}
