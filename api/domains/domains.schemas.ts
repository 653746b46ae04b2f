import { type Static, Type } from 'typebox';
import type { DomainDetails } from '../../domain/domains/domain.service.ts';
import { withFindings } from '../../domain/domains/domain-records.ts';
import { MAX_FOUND_LENGTH } from '../../domain/domains/record-checks.ts';
import { singleLineText } from '../messages/addresses.ts';
import { minimalOf } from '../minimal-response.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  orNull,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

const Status = (description: string) => enumOf(['pending', 'verified', 'failed'], { description });

const CatchAllInboxId = nullableText(128, {
  description:
    'Inbox that receives mail to addresses of the domain that no inbox has. Null: such mail is refused.',
});

export const DomainRecordSchema = resource(
  'domain',
  {
    id: id('Domain id (dom_…).'),
    domain_name: text(253, { description: 'ASCII form (IDNA), in lower case.' }),
    client_id: nullableText(255, { description: 'Idempotency key given at creation.' }),
    verification_status: Status('verified once every required record has been found.'),
    spf_status: Status('Status of the SPF record.'),
    dkim_status: Status('Status of the record of the active DKIM key.'),
    dmarc_status: Status('Status of the DMARC record, which is recommended but not required.'),
    status_reason: nullableText(1024, {
      description: 'What is missing or why verification failed. Null if there is no problem.',
    }),
    records: Type.Array(
      strictObject({
        purpose: enumOf(['ownership', 'spf', 'dkim', 'mx', 'dmarc']),
        type: enumOf(['TXT', 'MX']),
        name: text(255, { description: 'Fully qualified, without a trailing dot.' }),
        value: text(1024, {
          description: 'The value to publish. Merge it with an existing SPF record.',
        }),
        priority: Type.Unsafe<number | null>({
          type: ['integer', 'null'],
          description: 'For MX records only.',
        }),
        ttl: Type.Integer({ description: 'Suggested TTL in seconds.' }),
        required: Type.Boolean({ description: 'Whether verification requires this record.' }),
        status: enumOf(['missing', 'invalid', 'valid'], { description: 'As of the last check.' }),
        found: nullableText(MAX_FOUND_LENGTH, {
          description: 'What is currently published, one record per line.',
        }),
      }),
      { maxItems: 10 },
    ),
    catch_all_inbox_id: CatchAllInboxId,
    last_checked_at: nullableTimestamp('When DNS was last queried.'),
    next_check_at: nullableTimestamp(
      'When DNS is queried next while records are awaited. Null: nothing is awaited; a verified domain is checked once a day.',
    ),
    verified_at: nullableTimestamp('When it last became verified.'),
    created_at: timestamp(),
    updated_at: timestamp(),
  },
  { $id: 'Domain', title: 'Domain' },
);

export const MinimalDomain = minimalOf(DomainRecordSchema, ['id', 'verification_status']);
/** Spread into the config of changes that return a domain. */
export const DOMAIN_RESPONSE = { readPermission: 'domains:read', minimalResponse: MinimalDomain } as const;

export const CreateDomain = strictObject(
  {
    domain_name: text(253, {
      minLength: 1,
      description: 'A domain you own. Unicode names are converted to ASCII (IDNA).',
    }),
    client_id: Type.Optional(
      orNull(
        singleLineText(255, {
          minLength: 1,
          description: 'Makes creation idempotent: repeating it returns 200 and the existing domain.',
        }),
      ),
    ),
  },
  { $id: 'CreateDomain', title: 'CreateDomain' },
);

export const UpdateDomain = strictObject(
  {
    catch_all_inbox_id: CatchAllInboxId,
  },
  { $id: 'UpdateDomain', title: 'UpdateDomain' },
);

export function presentDomain({ domain, records }: DomainDetails): Static<typeof DomainRecordSchema> {
  return {
    object: 'domain',
    id: domain.id,
    domain_name: domain.domainName,
    client_id: domain.clientId,
    verification_status: domain.verificationStatus,
    spf_status: domain.spfStatus,
    dkim_status: domain.dkimStatus,
    dmarc_status: domain.dmarcStatus,
    status_reason: domain.statusReason,
    records: withFindings(domain, records).map(({ key: _, keyState: __, ...record }) => record),
    catch_all_inbox_id: domain.catchAllInboxId,
    last_checked_at: domain.lastCheckedAt?.toISOString() ?? null,
    next_check_at: domain.nextCheckAt?.toISOString() ?? null,
    verified_at: domain.verifiedAt?.toISOString() ?? null,
    created_at: domain.createdAt.toISOString(),
    updated_at: domain.updatedAt.toISOString(),
  };
}
