import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/**
 * An alarm in force: a received message tries to instruct the agent that reads it, so that a person approves the risky sends
 * of its inbox (policy `after_alarm`). The row is deleted when a person dismisses the alarm, and some time after it has ended.
 */
export const InjectionAlarmEntity = defineEntity({
  name: 'InjectionAlarm',
  tableName: 'injection_alarms',
  policies: tenantPolicies(),
  indexes: [
    // For the send gate and for webhooks, which ask for the alarms of an inbox, or of all that a key reaches.
    { properties: ['organizationId', 'inboxId', 'endsAt'] },
    { properties: ['endsAt'] },
  ],
  properties: {
    /** There is no foreign key: the deletion of the message must not end the alarm, because an agent may have read it. */
    messageId: idColumn().primary(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: () => p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').deleteRule('cascade'),
    inboxId: () => p.manyToOne(InboxEntity).mapToPk().fieldName('inbox_id').deleteRule('cascade'),
    /** The living thread of the message; a merge of threads keeps it up to date. */
    threadId: idColumn(),
    /**
     * Address keys that the message brought in. Null: too many to list, or the message was deleted; every address then counts as
     * one of them.
     */
    addresses: p.array().strictNullable(),
    endsAt: timestamp(),
  },
});

export type InjectionAlarm = InferEntity<typeof InjectionAlarmEntity>;
