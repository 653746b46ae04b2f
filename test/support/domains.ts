import type { DnsServer } from './dns-server.ts';

/** A record as the API returns it. */
export interface PublishedRecord {
  purpose: string;
  type: string;
  name: string;
  value: string;
  priority: number | null;
  required: boolean;
  status: string;
  found: string | null;
}

/** Publishes records like a customer: long texts in strings of 255, records of one name and type together. */
export function publishRecords(server: DnsServer, records: PublishedRecord[]): void {
  for (const [, same] of Map.groupBy(records, ({ name, type }) => `${type} ${name}`)) {
    const [first] = same;
    if (!first) continue;
    if (first.type === 'MX')
      server.set(
        first.name,
        'MX',
        ...same.map(({ value, priority }) => ({ exchange: value, priority: priority ?? 0 })),
      );
    else
      server.set(
        first.name,
        'TXT',
        ...[...new Set(same.map(({ value }) => value))].map((value) => value.match(/.{1,255}/g) ?? ['']),
      );
  }
}
