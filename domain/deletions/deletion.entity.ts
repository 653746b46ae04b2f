import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, oneOf, primaryId, timestamp } from '../../platform/database/columns.ts';

const DELETION_KINDS = ['account', 'organization'] as const;
export type DeletionKind = (typeof DELETION_KINDS)[number];

/**
 * `waiting`: recoverable until it is due. `purging`: its data is being deleted. `stopped`: an operator stopped the purge;
 * it is recoverable unless the purge has begun.
 */
const DELETION_STATUSES = ['waiting', 'recovered', 'purging', 'purged', 'stopped'] as const;
export type DeletionStatus = (typeof DELETION_STATUSES)[number];

/**
 * The deletion of an account or organization. The row decides between recovery and purge, and stays as the record of the
 * purge. It contains only ids.
 */
export const DeletionEntity = defineEntity({
  name: 'Deletion',
  tableName: 'deletions',
  checks: [
    { name: 'deletions_kind', expression: oneOf('kind', DELETION_KINDS) },
    { name: 'deletions_status', expression: oneOf('status', DELETION_STATUSES) },
  ],
  indexes: [
    { properties: ['accountDeletionId'] },
    {
      name: 'deletions_open_index',
      expression: `create index "deletions_open_index" on "deletions" ("reconciled_at") where "status" in ('waiting', 'purging')`,
    },
  ],
  uniques: [
    {
      name: 'deletions_subject_unique',
      expression: `create unique index "deletions_subject_unique" on "deletions" ("subject_id") where "status" in ('waiting', 'purging', 'stopped')`,
    },
  ],
  properties: {
    id: primaryId(),
    kind: p.text().$type<DeletionKind>(),
    /** Id of the user or organization. No foreign key: the row outlives its subject. */
    subjectId: idColumn(),
    /** The user who deleted it. */
    deletedBy: idColumn(),
    /**
     * The account deletion that closed the organization, and whose recovery reopens it; null if the organization was closed
     * by itself.
     */
    accountDeletionId: idColumn().strictNullable(),
    status: p.text().$type<DeletionStatus>().default('waiting'),
    /** Number of the purge run, part of the workflow id. Incremented when an operator resumes a stopped purge. */
    generation: p.integer().default(1),
    deletedAt: timestamp(),
    /** When recovery ends and the purge begins. */
    dueAt: timestamp(),
    /** From this time on the data is incomplete, and nothing can be recovered. */
    purgeStartedAt: timestamp().strictNullable(),
    /** When it was recovered, purged or stopped. */
    endedAt: timestamp().strictNullable(),
    /** When the reconciler last checked the run; null if it never did. */
    reconciledAt: timestamp().strictNullable(),
  },
});

export type Deletion = InferEntity<typeof DeletionEntity>;
