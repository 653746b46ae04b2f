import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId, timestamp, updatedAt } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import { DomainEntity } from '../domains/domain.entity.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** A person (a member or staff) or a credential that paused sending. */
export type PauserKind = 'user' | 'staff' | 'api_key' | 'connection';

/** An address that sends and receives. A deleted inbox keeps its row, because its messages stay readable. */
export const InboxEntity = defineEntity({
  name: 'Inbox',
  tableName: 'inboxes',
  policies: tenantPolicies({ lookup: true, staff: true }),
  indexes: [
    { properties: ['environmentId', 'id'] },
    { properties: ['domainId'] },
    {
      name: 'inboxes_reputation_paused_index',
      expression: `create index "inboxes_reputation_paused_index" on "inboxes" ("id") where "reputation_paused" and "deleted_at" is null`,
    },
    {
      name: 'inboxes_pending_purge_index',
      expression: `create index "inboxes_pending_purge_index" on "inboxes" ("purge_requested_at") where "purge_requested_at" is not null and "purged_at" is null`,
    },
  ],
  uniques: [
    {
      name: 'inboxes_email_unique',
      expression:
        'create unique index "inboxes_email_unique" on "inboxes" ("email") where "deleted_at" is null',
    },
    {
      name: 'inboxes_client_id_unique',
      expression:
        'create unique index "inboxes_client_id_unique" on "inboxes" ("org_id", "client_id") where "deleted_at" is null',
    },
  ],
  triggers: [
    functionTrigger({
      name: 'signal_inboxes_access',
      table: 'inboxes',
      event: 'update',
      when: 'old.status is distinct from new.status',
      calls: 'signal_access',
    }),
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: () => p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').deleteRule('cascade'),
    /** Lower case, without a plus-tag. */
    email: p.text(),
    username: p.text(),
    domain: p.text(),
    /** Null on the shared domain, and if the organization's domain was deleted after the inbox. */
    domainId: () =>
      p.manyToOne(DomainEntity).mapToPk().fieldName('domain_id').nullable().deleteRule('set null'),
    /** Additional addresses, in lower case. Mail to them arrives here, and replies to it leave from them. */
    aliases: p.array().$type<string[]>().default([]),
    displayName: p.text().strictNullable(),
    clientId: p.text().strictNullable(),
    status: p.text().$type<'active' | 'suspended'>().default('active'),
    sendPaused: p.boolean().default(false),
    /** Null while `sendPaused` is false. */
    sendPausedReason: p.text().strictNullable(),
    /** Who paused sending; null if the service did, and while `sendPaused` is false. */
    sendPausedByKind: p.text().$type<PauserKind>().strictNullable(),
    sendPausedById: p.text().strictNullable(),
    /** Null while `sendPaused` is false. */
    sendPausedAt: timestamp().strictNullable(),
    /** The inbox exceeded the reputation limits after it was last resumed, whether or not someone else had paused it before. */
    reputationPaused: p.boolean().default(false),
    /** When a pause by the service last ended: earlier events do not pause the inbox again. Null if none ever did. */
    sendResumedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
    deletedAt: timestamp().strictNullable(),
    /** When a purge of the deleted inbox was requested; null if its messages remain. */
    purgeRequestedAt: timestamp().strictNullable(),
    purgedAt: timestamp().strictNullable(),
    /** When the reconciler last checked the row's run; null if it never did. */
    reconciledAt: timestamp().strictNullable(),
  },
});

export type Inbox = InferEntity<typeof InboxEntity>;

/** The SMTP submission password of an inbox. Without a password there is no row. */
export const InboxCredentialEntity = defineEntity({
  name: 'InboxCredential',
  tableName: 'inbox_credentials',
  policies: tenantPolicies(),
  properties: {
    inboxId: () => p.manyToOne(InboxEntity).mapToPk().fieldName('inbox_id').primary().deleteRule('cascade'),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** SHA-256 suffices: the password is generated with enough entropy to resist guessing. */
    passwordHash: p.blob(),
    rotatedAt: timestamp(),
  },
});

/**
 * The inbox that holds an address or an alias, across all tenants. Written only through the function `claim_address`, which sees every
 * tenant's rows. A released address stays reserved for its organization for 90 days.
 */
export const AddressClaimEntity = defineEntity({
  name: 'AddressClaim',
  tableName: 'address_claims',
  policies: tenantPolicies({ lookup: true }),
  indexes: [
    { properties: ['organizationId'] },
    {
      name: 'address_claims_released_index',
      expression: `create index "address_claims_released_index" on "address_claims" ("released_at") where "released_at" is not null`,
    },
  ],
  properties: {
    email: p.text().primary(),
    organizationId: idColumn().fieldName('org_id'),
    inboxId: idColumn(),
    /** Null while an inbox holds the address. */
    releasedAt: timestamp().strictNullable(),
  },
});
