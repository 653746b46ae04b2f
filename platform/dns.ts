import { Resolver } from 'node:dns/promises';
import type { Config } from './config.ts';

/** What DNS says of a name: records, certainly none, or nothing that one may act on. */
export type DnsAnswer<Record> =
  | { kind: 'found'; records: Record[] }
  /** The name does not exist, or has no record of this type. */
  | { kind: 'none' }
  /** Server failure, refusal, time-out: it may be otherwise in a minute, so nobody concludes anything from it. */
  | { kind: 'unknown'; error: string };

export interface MxRecord {
  /** As published, without a trailing dot. */
  exchange: string;
  priority: number;
}

export interface DnsLookup {
  /** TXT records, the strings of each joined without a space (RFC 7208 section 3.3). Aliases are followed. */
  txt(name: string): Promise<DnsAnswer<string>>;
  mx(name: string): Promise<DnsAnswer<MxRecord>>;
}

/** c-ares' codes for an answer that says no. Everything else is a failure to answer. */
const NO_RECORD = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME']);

/** A zone is a stranger's: what is read of it is bounded. */
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
      // One for each question: a resolver that lives keeps answers, and who asks wants what is published now.
      const found = await question(createResolver(config));
      return { kind: 'found', records: found.slice(0, MAX_RECORDS).map(read) };
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'UNKNOWN';
      return NO_RECORD.has(code) ? { kind: 'none' } : { kind: 'unknown', error: code };
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

/** A resolver as configured, for libraries that want one of Node's. */
export function createResolver({
  DNS_SERVERS,
  DNS_TIMEOUT_MS,
  DNS_TRIES,
}: Pick<Config, 'DNS_SERVERS' | 'DNS_TIMEOUT_MS' | 'DNS_TRIES'>): Resolver {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  if (DNS_SERVERS) resolver.setServers(DNS_SERVERS.split(',').map((server) => server.trim()));
  return resolver;
}
