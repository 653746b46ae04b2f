import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/**
 * An outcome that counts against an inbox's reputation. It is stored separately from the message, so that counting is a
 * single index scan and deleting a message does not improve its sender's reputation.
 */
export const ReputationOutcomeEntity = defineEntity({
  name: 'ReputationOutcome',
  tableName: 'reputation_outcomes',
  policies: tenantPolicies(),
  indexes: [{ properties: ['createdAt'] }],
  properties: {
    inboxId: idColumn().primary(),
    kind: p.text().$type<'bounce' | 'complaint'>().primary(),
    /** The id contains the message's creation time, which determines whether the outcome lies within the window. */
    messageId: idColumn().primary(),
    position: p.smallint().primary(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    createdAt: createdAt(),
  },
});

export type ReputationOutcome = InferEntity<typeof ReputationOutcomeEntity>;
