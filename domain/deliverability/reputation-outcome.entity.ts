import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/**
 * An outcome that counts against an inbox's reputation. Kept apart from the messages, so that counting them is one walk
 * through an index and deleting a message does not whitewash its sender.
 */
export const ReputationOutcomeEntity = defineEntity({
  name: 'ReputationOutcome',
  tableName: 'reputation_outcomes',
  policies: tenantPolicies(),
  indexes: [{ properties: ['createdAt'] }],
  properties: {
    inboxId: idColumn().primary(),
    kind: p.text().$type<'bounce' | 'complaint'>().primary(),
    /** Its id tells when the message was made, and with it whether it lies within the days that count. */
    messageId: idColumn().primary(),
    position: p.smallint().primary(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    createdAt: createdAt(),
  },
});

export type ReputationOutcome = InferEntity<typeof ReputationOutcomeEntity>;
