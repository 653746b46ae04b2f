import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, primaryId, timestamp, updatedAt } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

export type DraftSendStatus = 'draft' | 'scheduled' | 'failed';

/** An unsent message. Sending deletes it in the transaction that creates the message. */
export const DraftEntity = defineEntity({
  name: 'Draft',
  tableName: 'drafts',
  policies: tenantPolicies({ lookup: true }),
  indexes: [
    { properties: ['inboxId', 'id'] },
    {
      name: 'drafts_scheduled_index',
      expression: `create index "drafts_scheduled_index" on "drafts" ("send_at") where "send_status" = 'scheduled'`,
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: () => p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').deleteRule('cascade'),
    inboxId: () => p.manyToOne(InboxEntity).mapToPk().deleteRule('cascade'),
    /** Any string from the caller; looked up only when the draft is sent (specification, "Draft"). */
    threadId: p.text().strictNullable(),
    inReplyTo: p.text().strictNullable(),
    subject: p.text().strictNullable(),
    to: p.json().$type<MailAddress[]>(),
    cc: p.json().$type<MailAddress[]>(),
    bcc: p.json().$type<MailAddress[]>(),
    replyTo: p.json().$type<MailAddress[]>(),
    textBody: p.text().strictNullable(),
    htmlBody: p.text().strictNullable(),
    labels: p.array().$type<string[]>().default([]),
    headers: p.json().$type<Record<string, string>>(),
    /** Add a link for one-click unsubscription when it is sent. */
    unsubscribe: p.boolean().default(false),
    sendAt: timestamp().strictNullable(),
    sendStatus: p.text().$type<DraftSendStatus>().default('draft'),
    /** Why a scheduled send failed or was canceled; null otherwise. */
    sendError: p.text().strictNullable(),
    /** Incremented with every new schedule; each schedule has its own workflow run. */
    scheduleVersion: p.integer().default(0),
    /** Incremented with every change; compared with `If-Match`. */
    version: p.integer().default(1),
    /** When the reconciler last checked the row's workflow run; null if never. */
    reconciledAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export type Draft = InferEntity<typeof DraftEntity>;
