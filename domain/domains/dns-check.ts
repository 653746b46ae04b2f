import type { DnsAnswer, DnsLookup } from '../../platform/dns.ts';
import type { DomainRecord } from './domain-records.ts';
import type { Observation } from './record-checks.ts';

/** What DNS returned for a domain's records, by record key. Null if DNS gave no conclusive answer. */
export type DnsCheck = Map<string, Observation | null>;

/** Queries all records in parallel. Call it outside any transaction, because name servers may be slow. */
export async function checkRecords(dns: DnsLookup, records: DomainRecord[]): Promise<DnsCheck> {
  const observations = await Promise.all(
    records.map(
      async (record): Promise<[string, Observation | null]> => [record.key, await checkRecord(dns, record)],
    ),
  );
  return new Map(observations);
}

async function checkRecord(dns: DnsLookup, record: DomainRecord): Promise<Observation | null> {
  const answer = record.type === 'MX' ? await queryMx(dns, record.name) : await dns.txt(record.name);
  if (answer.kind === 'unknown') return null;
  const observation = record.evaluate(answer.kind === 'found' ? answer.records : []);
  if (record.purpose !== 'dmarc' || observation.status !== 'missing') return observation;
  return findInheritedPolicy(dns, record);
}

async function queryMx(dns: DnsLookup, name: string): Promise<DnsAnswer<string>> {
  const answer = await dns.mx(name);
  if (answer.kind !== 'found') return answer;
  return {
    kind: 'found',
    records: answer.records.map(({ exchange, priority }) => `${priority} ${exchange}`),
  };
}

/** Maximum number of parent domains queried for a policy. */
const MAX_PARENT_LOOKUPS = 4;

/** Without a DMARC record of its own, a domain inherits the policy of a parent domain (RFC 7489 section 6.6.3). */
async function findInheritedPolicy(
  dns: DnsLookup,
  { name, evaluate }: DomainRecord,
): Promise<Observation | null> {
  const labels = name.split('.').slice(1);
  for (let level = 1; level <= Math.min(MAX_PARENT_LOOKUPS, labels.length - 2); level += 1) {
    const answer = await dns.txt(`_dmarc.${labels.slice(level).join('.')}`);
    if (answer.kind === 'unknown') return null;
    const observation = evaluate(answer.kind === 'found' ? answer.records : []);
    if (observation.status !== 'missing') return observation;
  }
  return { status: 'missing', found: null };
}
