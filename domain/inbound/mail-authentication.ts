import { pipeline } from 'node:stream';
import { domainToASCII } from 'node:url';
import ipaddr from 'ipaddr.js';
import { parseAddress } from '../../platform/network.ts';
import { limitHeader } from '../mime/header-limit.ts';
import { domainOf } from '../mime/mail-address.ts';
import type { ParsedInboundMail } from '../mime/parser/pool.ts';
import type { RawMail } from './raw-mail.ts';

/** Results of RFC 8601 section 2.7: `pass`, `fail`, `softfail`, `neutral`, `none`, `temperror`, `permerror`, `policy`. */
export interface Authentication {
  spf: string;
  dkim: string;
  dmarc: string;
  arc: string;
  /** DMARC policy of the From domain; null without a record. */
  policy: 'none' | 'quarantine' | 'reject' | null;
  /** The domain that `dmarc` is about; absent if it is unknown. */
  authorDomain?: string;
  /** The domains of valid DKIM signatures, in lower case; absent if there are none. */
  signers?: string[];
  /** Only if the header could not be read; see `MessageAuthentication`. */
  unread?: { dmarc: string; authorDomain?: string };
}

export interface AuthenticationInput {
  raw: RawMail;
  isSigned: boolean;
  clientIp: string;
  helo: string | null;
  /** Empty string for `<>`. */
  mailFrom: string;
}

/** Never throws: an undetermined result is `temperror`. */
export type Authenticate = (input: AuthenticationInput) => Promise<Authentication>;

export interface AuthenticatorOptions {
  /** Resolves records like `dns.Resolver.resolve`. */
  resolve(name: string, type: string): Promise<unknown>;
  /** The total for all lookups of a message. */
  timeoutMs: number;
}

/** Far more than mail contains. Relaxed canonicalization (RFC 6376 section 3.4.2) reduces each run to one space anyway. */
const MAX_HEADER_SPACES = 256;

const NONE: Authentication = { spf: 'none', dkim: 'none', dmarc: 'none', arc: 'none', policy: null };
const UNKNOWN: Authentication = {
  spf: 'temperror',
  dkim: 'temperror',
  dmarc: 'temperror',
  arc: 'temperror',
  policy: null,
};

/** For installations in which another server authenticates mail. */
export const skipAuthentication: Authenticate = async () => NONE;

/** Checks SPF (RFC 7208), DKIM (RFC 6376), ARC (RFC 8617) and DMARC (RFC 9989) within a time limit. */
export function createAuthenticator({ resolve, timeoutMs }: AuthenticatorOptions): Authenticate {
  return async (input) => {
    const isPublic = isPublicAddress(input.clientIp);
    // A private client address does not identify the sender, and without a signature there is nothing else to check.
    if (!isPublic && !input.isSigned) return NONE;
    const timeout = AbortSignal.timeout(timeoutMs);
    const timedOut = new Promise<never>((_, reject) => {
      timeout.addEventListener('abort', () => reject(new LookupTimeoutError()), { once: true });
    });
    timedOut.catch(() => {});
    const raw = await input.raw.open();
    try {
      // Loaded on demand: the library uses as much memory as everything else that an inbound worker loads.
      const { authenticate } = await import('mailauth');
      // The library takes quadratic time in the number of header lines and in white space. The parser reports a header
      // that exceeds the limits.
      const bounded = pipeline(
        raw,
        limitHeader(() => {}, { maxSpaces: MAX_HEADER_SPACES }),
        () => {},
      );
      const checked = authenticate(bounded, {
        ...(isPublic ? { ip: input.clientIp } : {}),
        ...(input.helo ? { helo: input.helo } : {}),
        sender: input.mailFrom,
        mta: 'localhost',
        trustReceived: false,
        disableBimi: true,
        resolver: (name, type) => Promise.race([resolve(name, type) as Promise<string[]>, timedOut]),
      });
      return toAuthentication(await Promise.race([checked, timedOut]), isPublic);
    } catch {
      return isPublic ? UNKNOWN : { ...UNKNOWN, spf: 'none' };
    } finally {
      raw.destroy();
    }
  };
}

/** Has the error code of a resolver timeout, so that it counts as a temporary error. */
class LookupTimeoutError extends Error {
  readonly code = 'ETIMEOUT';
}

interface CheckResult {
  status: { result: string };
}

/** The result of `mailauth`; `false` if there was nothing to check. */
interface MailauthReport {
  spf: CheckResult | false;
  dkim: { results?: (CheckResult & { status: { aligned?: string | false }; signingDomain?: string })[] };
  dmarc: { status: { result: string; header?: { from?: string } }; policy?: string } | false;
  arc: CheckResult | false;
}

function toAuthentication(checked: unknown, isPublic: boolean): Authentication {
  const { spf, dkim, dmarc, arc } = checked as MailauthReport;
  const policy = dmarc ? dmarc.policy : null;
  const authorDomain = dmarc ? dmarc.status.header?.from : undefined;
  const signers = (dkim.results ?? []).flatMap(({ status, signingDomain }) =>
    status.result === 'pass' && signingDomain ? signingDomain.toLowerCase() : [],
  );
  const found = {
    spf: isPublic ? toResult(spf) : 'none',
    dkim: selectDkimResult(dkim.results ?? []),
    dmarc: toResult(dmarc),
  };
  return {
    ...found,
    dmarc: resolveDmarcResult(found, isPublic),
    arc: toResult(arc),
    policy: policy === 'none' || policy === 'quarantine' || policy === 'reject' ? policy : null,
    ...(authorDomain ? { authorDomain } : {}),
    ...(signers.length > 0 ? { signers } : {}),
  };
}

/** A failed lookup or an unknown client address must not make a message count as forged. */
function resolveDmarcResult(
  { spf, dkim, dmarc }: Pick<Authentication, 'spf' | 'dkim' | 'dmarc'>,
  isPublic: boolean,
) {
  if (dmarc === 'pass') return dmarc;
  if (!isPublic) return 'none';
  return dmarc === 'fail' && [spf, dkim].includes('temperror') ? 'temperror' : dmarc;
}

function toResult(checked: CheckResult | false | undefined): string {
  return checked ? checked.status.result : 'none';
}

/** Selects the most significant signature: a passing aligned one, else a passing one, else any. */
function selectDkimResult(results: NonNullable<MailauthReport['dkim']['results']>): string {
  const aligned = results.find(({ status }) => status.result === 'pass' && status.aligned);
  const passing = results.find(({ status }) => status.result === 'pass');
  return (aligned ?? passing ?? results[0])?.status.result ?? 'none';
}

/** Whether the address is not loopback, private, link-local or reserved. */
export function isPublicAddress(address: string): boolean {
  return parseAddress(address) !== null && ipaddr.process(address).range() === 'unicast';
}

type DmarcResult = Pick<Authentication, 'dmarc' | 'authorDomain' | 'unread'>;

/**
 * A message without exactly one readable author fails DMARC (RFC 9989 section 5.3.1). So does a message whose author
 * the authentication read differently, because its result is about another domain than the one that readers see.
 */
export function markUnclearAuthor<Result extends DmarcResult>(
  authentication: Result,
  { from, isAuthorAmbiguous }: Pick<ParsedInboundMail, 'from' | 'isAuthorAmbiguous'>,
): Result {
  const { dmarc, authorDomain } = authentication;
  const isOther =
    dmarc === 'pass' &&
    authorDomain !== undefined &&
    toAscii(authorDomain) !== toAscii(domainOf(from?.email ?? ''));
  return isAuthorAmbiguous || isOther ? { ...authentication, dmarc: 'fail' } : authentication;
}

/** Like {@link markUnclearAuthor}, for a message whose header the parser could not read yet. Keeps the result for later. */
export function markUnreadAuthor(authentication: Authentication): Authentication {
  const { dmarc, authorDomain } = authentication;
  return { ...authentication, dmarc: 'fail', unread: { dmarc, ...(authorDomain ? { authorDomain } : {}) } };
}

function toAscii(domain: string): string {
  const name = domain.replace(/\.$/, '').toLowerCase();
  return domainToASCII(name) || name;
}
