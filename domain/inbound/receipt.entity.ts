import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, json, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { idFromBytes, idToBytes } from '../../platform/ids.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { Authentication } from './mail-authentication.ts';

/** Results of the provider that received the message. Only the provider knows the SMTP client. */
export interface ProviderVerdicts {
  authentication: Authentication;
  /** Spam or a virus was found. */
  isSpam: boolean;
}

/**
 * A message accepted over SMTP or from a provider, for one recipient of the transaction. Committed before the sender
 * receives 250. `mail` is addressed to an inbox, `report` to a signed return path of a sent message.
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
      expression: `create index "inbound_receipts_expired_index" on "inbound_receipts" ("processed_at") where "kind" = 'report' or "duplicate_of" is not null or "status" = 'discarded'`,
    },
    {
      name: 'inbound_receipts_reported_index',
      expression: `create index "inbound_receipts_reported_index" on "inbound_receipts" ("message_id") where "kind" = 'report'`,
    },
    {
      name: 'inbound_receipts_duplicate_index',
      expression: `create index "inbound_receipts_duplicate_index" on "inbound_receipts" ("duplicate_of") where "duplicate_of" is not null`,
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
    /** `mail`: the message to create; its id is chosen here, so that a retry stores it once. `report`: the reported message. */
    messageId: idColumn(),
    /** `report`: the recipient that the return path identifies; otherwise null. */
    recipientPosition: p.smallint().strictNullable(),
    rawKey: p.text(),
    sizeBytes: p.integer(),
    sha256: p.blob(),
    /** Message id of the provider; null over SMTP. */
    transportId: p.text().strictNullable(),
    /** Hash of the message without trace fields. Set during processing, only for the first such message of an inbox. */
    fingerprint: p.blob().strictNullable(),
    /** The earlier message that this one repeats; null unless it is a duplicate. */
    duplicateOf: idColumn().strictNullable(),
    /** Envelope sender (reverse-path of RFC 5321); empty string for `<>`. */
    mailFrom: p.text(),
    rcptTo: p.text(),
    /** Empty string if the provider does not report it. */
    clientIp: p.text(),
    helo: p.text().strictNullable(),
    /** Null if this service checks the message itself. */
    verdicts: json(p.json().$type<ProviderVerdicts>().strictNullable()),
    tls: p.boolean().default(false),
    /** `discarded`: an operator decided that the message is lost. */
    status: p.text().$type<'received' | 'processed' | 'discarded'>().default('received'),
    /** Why the message was discarded; null unless it was. */
    discardReason: p.text().strictNullable(),
    /** When the reconciler last recovered the workflow run; null if never. */
    reconciledAt: timestamp().strictNullable(),
    receivedAt: timestamp(),
    processedAt: timestamp().strictNullable(),
  },
});

export type Receipt = InferEntity<typeof ReceiptEntity>;

/** A message has the same UUID as its receipt, so a retry stores the same message. */
export function toMessageId(receiptId: string): string {
  return idFromBytes('message', idToBytes(receiptId));
}
