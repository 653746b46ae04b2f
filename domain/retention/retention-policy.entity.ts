import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** A stricter setting that waits for its time. Times are ISO 8601. */
export interface RetentionStep {
  /** The change of the policy it came with. */
  version: number;
  days: number;
  /** Not before then. */
  takesEffectAt: string;
  /** When the owners were told; null until the run that does so. */
  announcedAt: string | null;
  /** When they were told that it is about to begin; null before that. */
  warnedAt: string | null;
}

/** How long an organization keeps its mail. No row: for ever. */
export const RetentionPolicyEntity = defineEntity({
  name: 'RetentionPolicy',
  tableName: 'retention_policies',
  policies: tenantPolicies(),
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    /** What was asked for; 0 keeps. */
    retentionDays: p.integer().default(0),
    /** What is deleted by now. Looser than `retentionDays` while there are steps, else the same. */
    appliedDays: p.integer().default(0),
    /** Empty where `appliedDays` deletes nothing yet. */
    appliedSince: timestamp().strictNullable(),
    /** On the way from the one to the other, in order of time, each stricter than the one before. */
    steps: p.json().$type<RetentionStep[]>(),
    /** Nothing is deleted before; empty where nothing is postponed. */
    postponedUntil: timestamp().strictNullable(),
    /** When the owners were told that a postponed deletion goes on. */
    resumeWarnedAt: timestamp().strictNullable(),
    /** When the owners were last reminded that mail is deleted. */
    remindedAt: timestamp().strictNullable(),
    /** Counts the changes. */
    version: p.integer().default(0),
    /** Of the last change somebody asked for. */
    changedAt: timestamp(),
    createdAt: createdAt(),
  },
});

export type RetentionPolicy = InferEntity<typeof RetentionPolicyEntity>;
