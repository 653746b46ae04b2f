import { domainToASCII } from 'node:url';
import type { ParsedInboundMail } from '../mime/parser/pool.ts';
import type { Authentication } from './mail-authentication.ts';

type DmarcResult = Pick<Authentication, 'dmarc' | 'authorDomain' | 'unread'>;

/**
 * A message without exactly one readable author fails DMARC (RFC 9989 section 5.3.1), and so does one whose author the
 * authentication read differently: its result is about another domain than the one that is shown.
 */
export function markUnclearAuthor<Result extends DmarcResult>(
  authentication: Result,
  { from, isAuthorAmbiguous }: Pick<ParsedInboundMail, 'from' | 'isAuthorAmbiguous'>,
): Result {
  const { dmarc, authorDomain } = authentication;
  const isOther =
    dmarc === 'pass' &&
    authorDomain !== undefined &&
    toAscii(authorDomain) !== toAscii(domainOf(from?.email));
  return isAuthorAmbiguous || isOther ? { ...authentication, dmarc: 'fail' } : authentication;
}

/** {@link markUnclearAuthor} for a message whose header the parser could not read yet: it keeps the result. */
export function markUnreadAuthor(authentication: Authentication): Authentication {
  const { dmarc, authorDomain } = authentication;
  return { ...authentication, dmarc: 'fail', unread: { dmarc, ...(authorDomain ? { authorDomain } : {}) } };
}

function domainOf(email = ''): string {
  return email.slice(email.lastIndexOf('@') + 1);
}

function toAscii(domain: string): string {
  const name = domain.replace(/\.$/, '').toLowerCase();
  return domainToASCII(name) || name;
}
