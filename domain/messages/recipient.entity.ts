import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { timestamp, updatedAt } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { MessageEntity } from './message.entity.ts';

export type RecipientStatus =
  | 'pending'
  | 'sent'
  | 'deferred'
  | 'delivered'
  | 'bounced'
  | 'complained'
  | 'suppressed'
  | 'rejected';

/** An envelope recipient (RFC 5321) of an outbound message, with its own SMTP transaction, return path and outcome. */
export const RecipientEntity = defineEntity({
  name: 'Recipient',
  tableName: 'message_recipients',
  policies: tenantPolicies({ staff: true }),
  properties: {
    messageId: () =>
      p.manyToOne(MessageEntity).mapToPk().fieldName('message_id').primary().deleteRule('cascade'),
    /** Position in the envelope, from 0; part of the return-path token. */
    position: p.smallint().primary(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    field: p.text().$type<'to' | 'cc' | 'bcc'>(),
    email: p.text(),
    status: p.text().$type<RecipientStatus>().default('pending'),
    /** Enhanced status code (RFC 3463) of the last SMTP response or report; null before the first response. */
    statusCode: p.text().strictNullable(),
    diagnosticCode: p.text().strictNullable(),
    sentAt: timestamp().strictNullable(),
    updatedAt: updatedAt(),
  },
});

export type Recipient = InferEntity<typeof RecipientEntity>;
