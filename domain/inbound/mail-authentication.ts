import ipaddr from 'ipaddr.js';
import type { RawMail } from './raw-mail.ts';

/** Results as RFC 8601 section 2.7 names them: `pass`, `fail`, `softfail`, `neutral`, `none`, `temperror`, `permerror`, `policy`. */
export interface Authentication {
  spf: string;
  dkim: string;
  dmarc: string;
  arc: string;
  /** What the domain in From asks to be done with mail that fails DMARC; empty where it asks nothing. */
  policy: 'none' | 'quarantine' | 'reject' | null;
}

export interface AuthenticationInput {
  raw: RawMail;
  isSigned: boolean;
  clientIp: string;
  helo: string | null;
  /** Empty string for `<>`. */
  mailFrom: string;
}

/** Never throws: what cannot be told is `temperror`. */
export type Authenticate = (facts: AuthenticationInput) => Promise<Authentication>;

export interface AuthenticatorOptions {
  /** Records of a name as `dns.Resolver.resolve` answers. */
  resolve(name: string, type: string): Promise<unknown>;
  /** For all look-ups of a mail together. */
  timeoutMs: number;
}

const NONE: Authentication = { spf: 'none', dkim: 'none', dmarc: 'none', arc: 'none', policy: null };
const UNKNOWN: Authentication = {
  spf: 'temperror',
  dkim: 'temperror',
  dmarc: 'temperror',
  arc: 'temperror',
  policy: null,
};

/** For installations whose mail was authenticated before it got here. */
export const skipAuthentication: Authenticate = async () => NONE;

/** SPF (RFC 7208), DKIM (RFC 6376), ARC (RFC 8617) and DMARC (RFC 9989) of a mail, as far as DNS tells in time. */
export function createAuthenticator({ resolve, timeoutMs }: AuthenticatorOptions): Authenticate {
  return async (facts) => {
    const isPublic = isPublicAddress(facts.clientIp);
    // A host of our own says nothing of the sender, and without a signature there is nothing else to look at.
    if (!isPublic && !facts.isSigned) return NONE;
    const timeout = AbortSignal.timeout(timeoutMs);
    const timedOut = new Promise<never>((_, reject) => {
      timeout.addEventListener('abort', () => reject(new LookupTimeoutError()), { once: true });
    });
    timedOut.catch(() => {});
    const raw = await facts.raw.open();
    try {
      // Loaded where it is used: it is as large as all else a worker loads for mail.
      const { authenticate } = await import('mailauth');
      const checked = authenticate(raw, {
        ...(isPublic ? { ip: facts.clientIp } : {}),
        ...(facts.helo ? { helo: facts.helo } : {}),
        sender: facts.mailFrom,
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

/** As a resolver reports it, so that it counts as a temporary error. */
class LookupTimeoutError extends Error {
  readonly code = 'ETIMEOUT';
}

interface CheckResult {
  status: { result: string };
}

/** What the library answers; `false` where there was nothing to check. */
interface AuthenticationReport {
  spf: CheckResult | false;
  dkim: { results?: (CheckResult & { status: { aligned?: string | false } })[] };
  dmarc: (CheckResult & { policy?: string }) | false;
  arc: CheckResult | false;
}

function toAuthentication(checked: unknown, isPublic: boolean): Authentication {
  const { spf, dkim, dmarc, arc } = checked as AuthenticationReport;
  const policy = dmarc ? dmarc.policy : null;
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
  };
}

/** A mail is not called forged for what could not be looked up, nor where its sender's own address is not known. */
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

/** Of several signatures the one that tells most: one that holds and is the author's, one that holds, any. */
function selectDkimResult(results: NonNullable<AuthenticationReport['dkim']['results']>): string {
  const aligned = results.find(({ status }) => status.result === 'pass' && status.aligned);
  const passing = results.find(({ status }) => status.result === 'pass');
  return (aligned ?? passing ?? results[0])?.status.result ?? 'none';
}

/** One that mail from the internet may come from: not loopback, private, link-local or reserved. */
export function isPublicAddress(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'unicast';
}
