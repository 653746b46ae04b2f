import { isIP } from 'node:net';
import { domainToASCII, domainToUnicode } from 'node:url';

/** Leaves room for the longest name published below a domain (`<selector>._domainkey.`) within DNS' 253 characters. */
export const MAX_DOMAIN_LENGTH = 253 - '_agent-email-verification.'.length;

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** What is written in a name before it is made ASCII. URL syntax (`%61`, `/`, `@`, `[::1]`) is none. */
const WRITTEN = /^[\p{L}\p{N}\p{M}.\u3002\uFF0E\uFF61-]+$/u;

/** Top-level names that nobody can register below (RFC 6761, RFC 6762, RFC 7686, RFC 9476). */
const NOT_REGISTRABLE = new Set(['alt', 'arpa', 'internal', 'invalid', 'local', 'localhost', 'onion']);

/**
 * Registries of two labels that people enter by mistake. No more than a courtesy: who does not run a zone cannot
 * publish the ownership record in it, so no list has to be complete for the service to be safe.
 */
const SECOND_LEVEL_REGISTRIES = new Set(
  [
    'ac.uk co.uk gov.uk ltd.uk me.uk net.uk org.uk plc.uk com.au edu.au gov.au id.au net.au org.au co.nz net.nz org.nz',
    'co.jp ac.jp ne.jp or.jp go.jp co.kr or.kr com.br net.br org.br com.cn net.cn org.cn com.tw com.hk com.sg com.my',
    'co.in net.in org.in com.mx com.ar com.co com.tr com.ua co.za org.za co.il org.il com.pl com.vn co.th co.id com.ph',
    'github.io gitlab.io pages.dev workers.dev vercel.app netlify.app herokuapp.com web.app firebaseapp.com',
  ]
    .join(' ')
    .split(' '),
);

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
  if (!WRITTEN.test(written)) return { problem: 'malformed' };
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
  if (labels.length === 1 || NOT_REGISTRABLE.has(top) || SECOND_LEVEL_REGISTRIES.has(name))
    return { problem: 'public_suffix' };
  return { name };
}

/** Whether `name` is `parent` or below it. */
export function isWithinDomain(name: string, parent: string): boolean {
  const whole = parent.toLowerCase();
  return name === whole || name.endsWith(`.${whole}`);
}
