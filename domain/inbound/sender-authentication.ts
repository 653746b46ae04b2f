import type { Authentication } from './mail-authentication.ts';

/** `undetermined`: DNS did not answer, so the sender should try again. */
export type SenderCheck = 'authenticated' | 'unauthenticated' | 'undetermined';

/**
 * Whether mail comes from a domain or one of its subdomains: DMARC passes for its author, or a DKIM signature (RFC 6376) of the
 * domain is valid. SPF alone does not suffice, because it says nothing about the author that readers see.
 *
 * @param domain in lower case.
 */
export function checkSender(authentication: Authentication, domain: string): SenderCheck {
  const { spf, dkim, dmarc, authorDomain = '', signers = [] } = authentication;
  const isOfDomain = (name: string) => name === domain || name.endsWith(`.${domain}`);
  if (dmarc === 'pass' && isOfDomain(authorDomain.toLowerCase())) return 'authenticated';
  if (signers.some(isOfDomain)) return 'authenticated';
  return [spf, dkim, dmarc].includes('temperror') ? 'undetermined' : 'unauthenticated';
}
