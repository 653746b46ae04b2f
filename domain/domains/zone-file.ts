import type { DomainRecord } from './domain-records.ts';

/** Longest `<character-string>` of a TXT record (RFC 1035 section 3.3.14). */
const MAX_STRING_OCTETS = 255;

/** Formats records for import by BIND and most DNS providers (RFC 1035 section 5). Names are absolute, so no origin is needed. */
export function formatZoneFile(
  domainName: string,
  records: Omit<DomainRecord, 'key' | 'keyState' | 'evaluate'>[],
): string {
  const lines = records.flatMap((record) => [
    `; ${record.purpose}${record.required ? '' : ', not required'}`,
    `${record.name}. ${record.ttl} IN ${record.type} ${formatData(record)}`,
  ]);
  return [
    `; Records of ${domainName}. Merge the SPF record with an existing one: a domain may have only one.`,
    ...lines,
    '',
  ].join('\n');
}

function formatData({ type, value, priority }: Pick<DomainRecord, 'type' | 'value' | 'priority'>): string {
  return type === 'MX' ? `${priority ?? 0} ${value}.` : quoteText(value);
}

/** Quotes a text as one or more character-strings; octets outside printable ASCII are escaped as `\DDD`. */
export function quoteText(text: string): string {
  const octets = Buffer.from(text);
  const strings: string[] = [];
  for (let offset = 0; offset === 0 || offset < octets.length; offset += MAX_STRING_OCTETS)
    strings.push(
      `"${Array.from(octets.subarray(offset, offset + MAX_STRING_OCTETS), escapeOctet).join('')}"`,
    );
  return strings.join(' ');
}

function escapeOctet(octet: number): string {
  if (octet === 0x22 || octet === 0x5c) return `\\${String.fromCharCode(octet)}`;
  if (octet >= 0x20 && octet < 0x7f) return String.fromCharCode(octet);
  return `\\${String(octet).padStart(3, '0')}`;
}
