import { isIP } from 'node:net';
import { domainToASCII, domainToUnicode } from 'node:url';
import { getDomain } from 'tldts';

/** Leaves room for the longest name published below a domain (`<selector>._domainkey.`) within DNS' 253 characters. */
export const MAX_DOMAIN_LENGTH = 253 - '_agent-email-verification.'.length;

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** What is written in a name before it is made ASCII. URL syntax (`%61`, `/`, `@`, `[::1]`) is none. */
const ALLOWED_CHARACTERS = /^[\p{L}\p{N}\p{M}.\u3002\uFF0E\uFF61-]+$/u;

/** Top-level names that nobody can register below (RFC 6761, RFC 6762, RFC 7686, RFC 9476). */
const NOT_REGISTRABLE = new Set(['alt', 'arpa', 'internal', 'invalid', 'local', 'localhost', 'onion']);

/** Why a text is no domain of a customer's. */
export type DomainNameProblem = 'malformed' | 'too_long' | 'address' | 'public_suffix';

/**
 * A domain as it is compared and published: IDNA's ASCII form, lower case, no trailing dot.
 *
 * @returns the name, or why it cannot be one.
 */
export function parseDomainName(given: string): { name: string } | { problem: DomainNameProblem } {
  const written = given.replace(/[.\u3002\uFF0E\uFF61]$/u, '');
  if (isIP(written) !== 0) return { problem: 'address' };
  if (!ALLOWED_CHARACTERS.test(written)) return { problem: 'malformed' };
  const name = domainToASCII(written).toLowerCase();
  // `0x7f.1` and full-width digits become an address only here.
  if (isIP(name) !== 0) return { problem: 'address' };
  const labels = name.split('.');
  // What claims to be Unicode and is not stays as it is.
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
 * Whether a registry or a hosting platform hands out names below this one (publicsuffix.org). This only catches a
 * mistake early: verification needs a record in the zone of the domain, which only its owner can publish.
 */
function isPublicSuffix(name: string): boolean {
  return getDomain(name, { allowPrivateDomains: true }) === null;
}

/** Whether `name` is `parent` or below it. */
export function isWithinDomain(name: string, parent: string): boolean {
  const whole = parent.toLowerCase();
  return name === whole || name.endsWith(`.${whole}`);
}
