import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, primaryId, timestamp, updatedAt } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { Observation } from './record-checks.ts';

export type DomainStatus = 'pending' | 'verified' | 'failed';

/**
 * A domain of a customer's own. Several organizations may claim one name; one at most has it verified, which the
 * function `claim_domain` and, behind it, the unique index see to.
 */
export const DomainEntity = defineEntity({
  name: 'Domain',
  tableName: 'domains',
  policies: tenantPolicies({ lookup: true }),
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
    /** What the ownership record says; another organization's claim to the name has another. */
    ownershipToken: p.text(),
    verificationStatus: p.text().$type<DomainStatus>().default('pending'),
    spfStatus: p.text().$type<DomainStatus>().default('pending'),
    dkimStatus: p.text().$type<DomainStatus>().default('pending'),
    dmarcStatus: p.text().$type<DomainStatus>().default('pending'),
    /** Why it is as it is, for a person. Empty where there is nothing to say. */
    statusReason: p.text().strictNullable(),
    /** What the last look found, by record key. */
    observed: p.json().$type<Record<string, Observation>>(),
    /** Daily re-checks in a row that missed a required record of a verified domain. */
    failedChecks: p.integer().default(0),
    /** Rises with every series of looks (a creation, a `verify` after the end, a rotation): the run's id carries it. */
    episode: p.integer().default(1),
    episodeStartedAt: timestamp(),
    /** When the episode's run looks next. Empty: no run is due. */
    nextCheckAt: timestamp().strictNullable(),
    lastCheckedAt: timestamp().strictNullable(),
    verifiedAt: timestamp().strictNullable(),
    /** When the reconciler last looked after its run. */
    reconciledAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export type Domain = InferEntity<typeof DomainEntity>;
