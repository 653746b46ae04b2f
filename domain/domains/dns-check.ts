import type { DnsAnswer, DnsLookup } from '../../platform/dns.ts';
import type { DomainRecord } from './domain-records.ts';
import type { Observation } from './record-checks.ts';

/** What DNS said of a domain's records, by their key. Null where it gave no answer that one may act on. */
export type DnsCheck = Map<string, Observation | null>;

/** Asks for all records at once. Belongs outside of any transaction: a name server may take its time. */
export async function checkRecords(dns: DnsLookup, records: DomainRecord[]): Promise<DnsCheck> {
  const seen = await Promise.all(
    records.map(
      async (record): Promise<[string, Observation | null]> => [record.key, await checkRecord(dns, record)],
    ),
  );
  return new Map(seen);
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

/** Names above a domain that are asked for a policy. */
const MAX_PARENT_LOOKUPS = 4;

/** A domain without a DMARC record lives under that of the domain above it (RFC 7489 section 6.6.3). */
async function findInheritedPolicy(
  dns: DnsLookup,
  { name, evaluate }: DomainRecord,
): Promise<Observation | null> {
  const labels = name.split('.').slice(1);
  for (let up = 1; up <= Math.min(MAX_PARENT_LOOKUPS, labels.length - 2); up += 1) {
    const answer = await dns.txt(`_dmarc.${labels.slice(up).join('.')}`);
    if (answer.kind === 'unknown') return null;
    const observation = evaluate(answer.kind === 'found' ? answer.records : []);
    if (observation.status !== 'missing') return observation;
  }
  return { status: 'missing', found: null };
}
