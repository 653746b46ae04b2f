import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, json, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** A stricter period that has not taken effect yet. Times are ISO 8601. */
export interface RetentionStep {
  /** Version of the policy that added the step. */
  version: number;
  days: number;
  /** Earliest time it takes effect. */
  takesEffectAt: string;
  /** When the owners were notified of it; null before. */
  announcedAt: string | null;
  /** When the owners got the final warning; null before. */
  warnedAt: string | null;
}

/** How long an organization keeps its messages. No row: forever. */
export const RetentionPolicyEntity = defineEntity({
  name: 'RetentionPolicy',
  tableName: 'retention_policies',
  policies: tenantPolicies(),
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    /** The period as set; 0: forever. */
    retentionDays: p.integer().default(0),
    /** The period in effect. Longer than `retentionDays` while steps are pending, else equal. */
    appliedDays: p.integer().default(0),
    /** Null while `appliedDays` is 0. */
    appliedSince: timestamp().strictNullable(),
    /** Pending steps from `appliedDays` to `retentionDays`, in order of time, each stricter than the one before. */
    steps: json(p.json().$type<RetentionStep[]>()),
    /** Nothing is deleted before this time; null if nothing is postponed. */
    postponedUntil: timestamp().strictNullable(),
    /** When the owners were warned that a postponed deletion resumes. */
    resumeWarnedAt: timestamp().strictNullable(),
    /** When the owners got the last monthly reminder. */
    remindedAt: timestamp().strictNullable(),
    /** Number of changes. */
    version: p.integer().default(0),
    /** When the policy was last set or postponed. */
    changedAt: timestamp(),
    createdAt: createdAt(),
  },
});

export type RetentionPolicy = InferEntity<typeof RetentionPolicyEntity>;
