import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { Authentication } from './mail-authentication.ts';

/** What the server that took a mail in found out about it: it saw the client, we do not. */
export interface ProviderVerdicts {
  authentication: Authentication;
  /** It found spam, or a virus. */
  isSpam: boolean;
}

/**
 * What was accepted over SMTP or handed over by a provider, for one recipient of the transaction: committed before the sender sees 250.
 * `mail` goes to an inbox, `report` came to a return path of ours and tells of a message we sent.
 */
export const ReceiptEntity = defineEntity({
  name: 'Receipt',
  tableName: 'inbound_receipts',
  policies: tenantPolicies(),
  indexes: [
    { properties: ['rawKey'] },
    {
      name: 'inbound_receipts_unprocessed_index',
      expression: `create index "inbound_receipts_unprocessed_index" on "inbound_receipts" ("received_at") where "status" = 'received'`,
    },
    {
      name: 'inbound_receipts_expired_index',
      expression: `create index "inbound_receipts_expired_index" on "inbound_receipts" ("processed_at") where "kind" = 'report' or "duplicate_of" is not null`,
    },
    {
      name: 'inbound_receipts_fingerprint_unique',
      expression: `create unique index "inbound_receipts_fingerprint_unique" on "inbound_receipts" ("inbox_id", "fingerprint") where "fingerprint" is not null`,
    },
    {
      name: 'inbound_receipts_transport_unique',
      expression: `create unique index "inbound_receipts_transport_unique" on "inbound_receipts" ("inbox_id", "transport_id") where "transport_id" is not null`,
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: idColumn().fieldName('env_id'),
    inboxId: idColumn(),
    kind: p.text().$type<'mail' | 'report'>(),
    /** `mail`: the message this becomes (chosen at receipt, so a retry stores it once). `report`: the message it tells of. */
    messageId: idColumn(),
    /** `report`: the recipient the return path names; empty otherwise. */
    recipientPosition: p.smallint().strictNullable(),
    rawKey: p.text(),
    sizeBytes: p.integer(),
    sha256: p.blob(),
    /** What the provider that handed the mail over calls it; empty where there is none, as over SMTP. */
    transportId: p.text().strictNullable(),
    /** Of the mail without trace fields. Only the first of its kind in an inbox has one, from when it was processed. */
    fingerprint: p.blob().strictNullable(),
    /** The message that was here before this mail came once more; empty where this one became a message. */
    duplicateOf: idColumn().strictNullable(),
    /** Envelope sender (RFC 5321 reverse-path); empty string for `<>`. */
    mailFrom: p.text(),
    rcptTo: p.text(),
    /** Empty string where the provider that handed the mail over does not tell. */
    clientIp: p.text(),
    helo: p.text().strictNullable(),
    /** Empty where we look ourselves. */
    verdicts: p.json().$type<ProviderVerdicts>().strictNullable(),
    tls: p.boolean().default(false),
    status: p.text().$type<'received' | 'processed'>().default('received'),
    /** When the reconciler last looked after the row's run; empty while everything goes its way. */
    reconciledAt: timestamp().strictNullable(),
    receivedAt: timestamp(),
    processedAt: timestamp().strictNullable(),
  },
});

export type Receipt = InferEntity<typeof ReceiptEntity>;
