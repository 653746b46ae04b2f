import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import {
  createdAt,
  idColumn,
  json,
  primaryId,
  timestamp,
  updatedAt,
} from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { Observation } from './record-checks.ts';

export type DomainStatus = 'pending' | 'verified' | 'failed';

/**
 * A customer's domain. Several organizations may claim one name, but at most one claim is verified: the function
 * `claim_domain` and a unique index ensure it.
 */
export const DomainEntity = defineEntity({
  name: 'Domain',
  tableName: 'domains',
  policies: tenantPolicies({ lookup: true, people: true, staff: true }),
  uniques: [
    { properties: ['organizationId', 'domainName'] },
    {
      name: 'domains_client_id_unique',
      expression: 'create unique index "domains_client_id_unique" on "domains" ("org_id", "client_id")',
    },
    {
      name: 'domains_verified_name_unique',
      expression: `create unique index "domains_verified_name_unique" on "domains" ("domain_name") where "verification_status" = 'verified'`,
    },
  ],
  indexes: [
    { properties: ['organizationId', 'id'] },
    {
      name: 'domains_catch_all_index',
      expression:
        'create index "domains_catch_all_index" on "domains" ("catch_all_inbox_id") where "catch_all_inbox_id" is not null',
    },
    {
      name: 'domains_next_check_index',
      expression:
        'create index "domains_next_check_index" on "domains" ("next_check_at") where "next_check_at" is not null',
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** ASCII, lower case, no trailing dot. */
    domainName: p.text(),
    clientId: p.text().strictNullable(),
    /** Value of the ownership record; differs for each organization that claims the name. */
    ownershipToken: p.text(),
    verificationStatus: p.text().$type<DomainStatus>().default('pending'),
    spfStatus: p.text().$type<DomainStatus>().default('pending'),
    dkimStatus: p.text().$type<DomainStatus>().default('pending'),
    dmarcStatus: p.text().$type<DomainStatus>().default('pending'),
    /** Human-readable explanation of the status. Null if there is nothing to explain. */
    statusReason: p.text().strictNullable(),
    /** What the last DNS check found, by record key. */
    observed: json(p.json().$type<Record<string, Observation>>()),
    /** Consecutive daily rechecks in which a required record of the verified domain was missing or invalid. */
    failedChecks: p.integer().default(0),
    /** Incremented with every series of DNS checks (creation, `verify` after the end, key rotation); part of the workflow id. */
    generation: p.integer().default(1),
    generationStartedAt: timestamp(),
    /** When the run of the current series checks next. Null: no run is due. */
    nextCheckAt: timestamp().strictNullable(),
    lastCheckedAt: timestamp().strictNullable(),
    verifiedAt: timestamp().strictNullable(),
    /** When the reconciler last checked its run. */
    reconciledAt: timestamp().strictNullable(),
    /** Receives mail to addresses of the domain that no inbox has; null: such mail is refused. */
    catchAllInboxId: idColumn().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export type Domain = InferEntity<typeof DomainEntity>;

/**
 * A domain's signing key. `active`: signs. `pending`: becomes active once its record is found. `retiring`: no longer signs,
 * but its record still verifies messages in transit. A domain has two selectors, so at most two keys.
 */
export const DkimKeyEntity = defineEntity({
  name: 'DkimKey',
  tableName: 'dkim_keys',
  policies: tenantPolicies(),
  properties: {
    domainId: () =>
      p.manyToOne(DomainEntity).mapToPk().fieldName('domain_id').primary().deleteRule('cascade'),
    selector: p.text().primary(),
    organizationId: idColumn().fieldName('org_id'),
    state: p.text().$type<'pending' | 'active' | 'retiring'>(),
    /** SubjectPublicKeyInfo in base64, as the record publishes it. */
    publicKey: p.text(),
    /** PKCS#8 PEM, sealed (AES-256-GCM). */
    privateKey: p.blob().hidden(),
    createdAt: createdAt(),
    retiredAt: timestamp().strictNullable(),
  },
});

export type DkimKey = InferEntity<typeof DkimKeyEntity>;
