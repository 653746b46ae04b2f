import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { TemplateName } from './templates.ts';

/**
 * `sending`: being handed over, or its worker died at that; it may have left and is not sent again. `failed` says why
 * in `lastError`.
 */
export type NotificationStatus = 'pending' | 'sending' | 'sent' | 'failed';

/** A mail of the service itself to one person. */
export const NotificationEntity = defineEntity({
  name: 'Notification',
  tableName: 'notifications',
  policies: tenantPolicies(),
  indexes: [
    { properties: ['organizationId', 'id'] },
    {
      name: 'notifications_open_index',
      expression: `create index "notifications_open_index" on "notifications" ("next_attempt_at") where "status" in ('pending', 'sending')`,
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** Empty for people who are no users (yet). */
    userId: idColumn().strictNullable(),
    /** Where it goes, as it was when it was written. */
    email: p.text(),
    template: p.text().$type<TemplateName>(),
    /** What the template is filled with. */
    params: p.json().$type<Record<string, unknown>>(),
    /** One mail for each, whoever asks how often. */
    dedupeKey: p.text().unique(),
    status: p.text().$type<NotificationStatus>().default('pending'),
    attempts: p.integer().default(0),
    nextAttemptAt: timestamp().strictNullable(),
    /** What the relay answered last, or why nothing more is tried. */
    lastError: p.text().strictNullable(),
    /** When the reconciler last looked after the row's run; empty while everything goes its way. */
    checkedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    sentAt: timestamp().strictNullable(),
  },
});

export type Notification = InferEntity<typeof NotificationEntity>;
