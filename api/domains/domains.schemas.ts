import { type Static, Type } from 'typebox';
import type { DomainDetails } from '../../domain/domains/domain.service.ts';
import { MAX_FOUND_LENGTH } from '../../domain/domains/record-checks.ts';
import { singleLineText } from '../messages/addresses.ts';
import { enumOf, id, nullableText, nullableTimestamp, strictObject, text, timestamp } from '../schemas.ts';

const Status = (description: string) => enumOf(['pending', 'verified', 'failed'], { description });

export const DomainRecordSchema = strictObject(
  {
    id: id('Domain id (dom_…).'),
    domain_name: text(253, { description: 'ASCII form (IDNA), lower case.' }),
    client_id: nullableText(255, { description: 'The key its creation was idempotent under.' }),
    verification_status: Status('verified once every required record was seen.'),
    spf_status: Status('Of the SPF record.'),
    dkim_status: Status('Of the record of the DKIM key that signs.'),
    dmarc_status: Status('Of the DMARC record, which is advised and not required.'),
    status_reason: nullableText(1024, {
      description: 'What is missing, or why it failed. Null where all is well.',
    }),
    records: Type.Array(
      strictObject({
        purpose: enumOf(['ownership', 'spf', 'dkim', 'mx', 'dmarc']),
        type: enumOf(['TXT', 'MX']),
        name: text(255, { description: 'Whole name, without a trailing dot.' }),
        value: text(1024, {
          description: 'What to publish; an SPF record you have already is to be merged.',
        }),
        priority: Type.Unsafe<number | null>({ type: ['integer', 'null'], description: 'Of an MX record.' }),
        ttl: Type.Integer({ description: 'Suggested, in seconds.' }),
        required: Type.Boolean({ description: 'Without it the domain is not verified.' }),
        status: enumOf(['missing', 'invalid', 'valid'], { description: 'As of the last look.' }),
        found: nullableText(MAX_FOUND_LENGTH, {
          description: 'What is published there of this kind; one a line.',
        }),
      }),
      { maxItems: 10 },
    ),
    last_checked_at: nullableTimestamp('When DNS was last asked.'),
    verified_at: nullableTimestamp('When it last became verified.'),
    created_at: timestamp(),
    updated_at: timestamp(),
  },
  { $id: 'Domain', title: 'Domain' },
);

export const CreateDomain = strictObject(
  {
    domain_name: text(253, { minLength: 1, description: 'A domain you own; Unicode is made ASCII.' }),
    client_id: Type.Optional(
      singleLineText(255, {
        minLength: 1,
        description: 'The same again answers 200 with the domain made first.',
      }),
    ),
  },
  { $id: 'CreateDomain', title: 'CreateDomain' },
);

export function presentDomain({ domain, records }: DomainDetails): Static<typeof DomainRecordSchema> {
  return {
    id: domain.id,
    domain_name: domain.domainName,
    client_id: domain.clientId,
    verification_status: domain.verificationStatus,
    spf_status: domain.spfStatus,
    dkim_status: domain.dkimStatus,
    dmarc_status: domain.dmarcStatus,
    status_reason: domain.statusReason,
    records: records.map(({ key, evaluate: _, ...record }) => ({
      ...record,
      ...(domain.observed[key] ?? { status: 'missing', found: null }),
    })),
    last_checked_at: domain.lastCheckedAt?.toISOString() ?? null,
    verified_at: domain.verifiedAt?.toISOString() ?? null,
    created_at: domain.createdAt.toISOString(),
    updated_at: domain.updatedAt.toISOString(),
  };
}
