import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, json, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { TemplateName } from './templates.ts';

/**
 * `sending`: an attempt is running, or its worker crashed; the email may have been sent and is not sent again.
 * `failed`: see `lastError`. Staff can send the email again.
 */
export const NOTIFICATION_STATUSES = ['pending', 'sending', 'sent', 'failed'] as const;
export type NotificationStatus = (typeof NOTIFICATION_STATUSES)[number];

/** An email from the service to one person. */
export const NotificationEntity = defineEntity({
  name: 'Notification',
  tableName: 'notifications',
  policies: tenantPolicies({ people: true, staff: true }),
  indexes: [
    { properties: ['organizationId', 'id'] },
    {
      name: 'notifications_failed_index',
      expression: `create index "notifications_failed_index" on "notifications" ("created_at") where "status" = 'failed'`,
    },
    {
      name: 'notifications_failed_list_index',
      expression: `create index "notifications_failed_list_index" on "notifications" ("id") where "status" = 'failed'`,
    },
    {
      name: 'notifications_unsent_index',
      expression: `create index "notifications_unsent_index" on "notifications" ("next_attempt_at") where "status" in ('pending', 'sending')`,
    },
  ],
  properties: {
    id: primaryId(),
    /** Null for an email about a person's own account. */
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').strictNullable().deleteRule('cascade'),
    /** Null for people who are not users yet. */
    userId: idColumn().strictNullable(),
    /** Recipient, as of when the row was created. */
    email: p.text(),
    template: p.text().$type<TemplateName>(),
    /** Template parameters. */
    params: json(p.json().$type<Record<string, unknown>>()),
    /**
     * Further parameters that must not be readable at rest, such as tokens. Removed once the email is sent or its link
     * has expired.
     */
    sealedParams: p.blob().strictNullable(),
    /** At most one email is created for each key. */
    dedupeKey: p.text().unique(),
    status: p.text().$type<NotificationStatus>().default('pending'),
    /** Attempts since the email was last sent again. */
    attempts: p.integer().default(0),
    /** Incremented each time someone sends the failed email again; part of the workflow id from 2 on. */
    generation: p.integer().default(1),
    nextAttemptAt: timestamp().strictNullable(),
    /** The relay's last answer, or why the email failed. */
    lastError: p.text().strictNullable(),
    /** When the reconciler last checked the row's run; null if it never had to. */
    reconciledAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    sentAt: timestamp().strictNullable(),
  },
});

export type Notification = InferEntity<typeof NotificationEntity>;
