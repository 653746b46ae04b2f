import type { DomainRecord } from './domain-records.ts';

/** Longest `<character-string>` of a TXT record (RFC 1035 section 3.3.14). */
const MAX_STRING_OCTETS = 255;

/** The records as BIND and most providers' import read them (RFC 1035 section 5). Names are whole, so any origin will do. */
export function formatZoneFile(domainName: string, records: Omit<DomainRecord, 'key' | 'judge'>[]): string {
  const lines = records.flatMap((record) => [
    `; ${record.purpose}${record.required ? '' : ', not required'}`,
    `${record.name}. ${record.ttl} IN ${record.type} ${formatData(record)}`,
  ]);
  return [
    `; Records of ${domainName}. Merge an SPF record you have already: a domain may have one.`,
    ...lines,
    '',
  ].join('\n');
}

function formatData({ type, value, priority }: Pick<DomainRecord, 'type' | 'value' | 'priority'>): string {
  return type === 'MX' ? `${priority ?? 0} ${value}.` : quoteText(value);
}

/** A text as quoted strings: split where it is too long for one, everything but plain ASCII as `\DDD`. */
export function quoteText(text: string): string {
  const octets = Buffer.from(text);
  const strings: string[] = [];
  for (let at = 0; at === 0 || at < octets.length; at += MAX_STRING_OCTETS)
    strings.push(`"${Array.from(octets.subarray(at, at + MAX_STRING_OCTETS), escapeOctet).join('')}"`);
  return strings.join(' ');
}

function escapeOctet(octet: number): string {
  if (octet === 0x22 || octet === 0x5c) return `\\${String.fromCharCode(octet)}`;
  if (octet >= 0x20 && octet < 0x7f) return String.fromCharCode(octet);
  return `\\${String(octet).padStart(3, '0')}`;
}
