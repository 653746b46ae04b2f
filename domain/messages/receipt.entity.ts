import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/**
 * What was accepted over SMTP, for one recipient of the transaction: committed before the sender sees 250.
 * `mail` goes to an inbox, `report` came to a return path of ours and tells of a message we sent.
 */
export const ReceiptEntity = defineEntity({
  name: 'Receipt',
  tableName: 'inbound_receipts',
  policies: tenantPolicies(),
  indexes: [
    {
      name: 'inbound_receipts_unprocessed_index',
      expression: `create index "inbound_receipts_unprocessed_index" on "inbound_receipts" ("received_at") where "status" = 'received'`,
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
    /** Envelope sender (RFC 5321 reverse-path); empty string for `<>`. */
    mailFrom: p.text(),
    rcptTo: p.text(),
    clientIp: p.text(),
    helo: p.text().strictNullable(),
    tls: p.boolean().default(false),
    status: p.text().$type<'received' | 'processed'>().default('received'),
    /** When the reconciler last looked after the row's run; empty while everything goes its way. */
    checkedAt: timestamp().strictNullable(),
    receivedAt: timestamp(),
    processedAt: timestamp().strictNullable(),
  },
});

export type Receipt = InferEntity<typeof ReceiptEntity>;
