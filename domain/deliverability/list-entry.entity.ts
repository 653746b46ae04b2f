import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, primaryId } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { ListDirection, ListEffect } from './list-match.ts';

/** One entry of an allow or block list of an inbox, an environment or the organization. */
export const ListEntryEntity = defineEntity({
  name: 'ListEntry',
  tableName: 'list_entries',
  policies: tenantPolicies(),
  indexes: [{ properties: ['organizationId', 'direction', 'effect', 'id'] }],
  uniques: [
    {
      // The lookups before each send and at each RCPT use its first three columns.
      name: 'list_entries_unique',
      expression:
        'create unique index "list_entries_unique" on "list_entries" ("org_id", "direction", "entry", "effect", "env_id", "inbox_id") nulls not distinct',
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    direction: p.text().$type<ListDirection>(),
    effect: p.text().$type<ListEffect>(),
    /** An address or a domain, normalized by `toListEntryKey`. */
    entry: p.text(),
    /** Of the receive allow list: only mail that is authenticated as the entry's domain is accepted. False in other lists. */
    authenticated: p.boolean().default(false),
    /** Null for an entry of the organization. */
    environmentId: () =>
      p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').deleteRule('cascade').strictNullable(),
    /** Null for an entry of the organization or of an environment. */
    inboxId: () =>
      p.manyToOne(InboxEntity).mapToPk().fieldName('inbox_id').deleteRule('cascade').strictNullable(),
    createdAt: createdAt(),
  },
});

export type ListEntry = InferEntity<typeof ListEntryEntity>;
