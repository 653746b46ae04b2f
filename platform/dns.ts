import { Resolver } from 'node:dns/promises';
import type { Config } from './config.ts';

/** The result of a DNS query: records, a negative answer, or no conclusive answer. */
export type DnsAnswer<Record> =
  | { kind: 'found'; records: Record[] }
  /** The name does not exist, or has no record of this type. */
  | { kind: 'none' }
  /** Server failure, refusal or timeout: temporary, so nothing may be concluded from it. */
  | { kind: 'unknown'; error: string };

export interface MxRecord {
  /** As published, without a trailing dot. */
  exchange: string;
  priority: number;
}

export interface DnsLookup {
  /** TXT records, with the strings of each joined without a space (RFC 7208 section 3.3). Follows CNAMEs. */
  txt(name: string): Promise<DnsAnswer<string>>;
  mx(name: string): Promise<DnsAnswer<MxRecord>>;
}

/** c-ares codes for a definitive negative answer. Every other code is a failure to answer. */
const NEGATIVE_ANSWER_CODES = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME']);

/** Limits on answers, because zones are untrusted. */
const MAX_RECORDS = 50;
const MAX_TEXT_LENGTH = 4096;

/** @throws Error for a server that is not `address` or `address:port`. */
export function createDnsLookup(
  config: Pick<Config, 'DNS_SERVERS' | 'DNS_TIMEOUT_MS' | 'DNS_TRIES'>,
): DnsLookup {
  createResolver(config);

  async function query<Found, Record>(
    question: (resolver: Resolver) => Promise<Found[]>,
    read: (found: Found) => Record,
  ): Promise<DnsAnswer<Record>> {
    try {
      // A new resolver per query, because a long-lived one caches answers.
      const found = await question(createResolver(config));
      return { kind: 'found', records: found.slice(0, MAX_RECORDS).map(read) };
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'UNKNOWN';
      return NEGATIVE_ANSWER_CODES.has(code) ? { kind: 'none' } : { kind: 'unknown', error: code };
    }
  }

  return {
    txt: (name) =>
      query(
        (resolver) => resolver.resolveTxt(name),
        (strings) => strings.join('').slice(0, MAX_TEXT_LENGTH),
      ),
    mx: (name) =>
      query(
        (resolver) => resolver.resolveMx(name),
        ({ exchange, priority }) => ({ exchange: exchange.slice(0, 255), priority }),
      ),
  };
}

/** The configured resolver, for libraries that take a `Resolver` of Node. */
export function createResolver({
  DNS_SERVERS,
  DNS_TIMEOUT_MS,
  DNS_TRIES,
}: Pick<Config, 'DNS_SERVERS' | 'DNS_TIMEOUT_MS' | 'DNS_TRIES'>): Resolver {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  if (DNS_SERVERS) resolver.setServers(DNS_SERVERS.split(',').map((server) => server.trim()));
  return resolver;
}
