import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId, timestamp, updatedAt } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** `queued`: the run has not started. `expired`: the archive was available and has been deleted. */
export const EXPORT_STATUSES = ['queued', 'running', 'ready', 'failed', 'canceled', 'expired'] as const;
export type ExportStatus = (typeof EXPORT_STATUSES)[number];
/** Statuses of an export that waits for a worker or is being written. */
export const UNFINISHED_STATUSES = ['queued', 'running'] as const satisfies ExportStatus[];

/** An archive of all data of an organization. */
export const ExportEntity = defineEntity({
  name: 'Export',
  tableName: 'exports',
  policies: tenantPolicies(),
  indexes: [
    { properties: ['organizationId', 'id'] },
    // One at a time per organization: further requests join it.
    {
      name: 'exports_running_unique',
      expression: `create unique index "exports_running_unique" on "exports" ("org_id") where "status" in ('queued', 'running')`,
    },
    {
      name: 'exports_failed_index',
      expression: `create index "exports_failed_index" on "exports" ("completed_at") where "status" = 'failed'`,
    },
    {
      name: 'exports_cleanup_index',
      expression: `create index "exports_cleanup_index" on "exports" ("updated_at") where "status" = 'ready' or "upload_id" is not null`,
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** The credential that requested it first. */
    requestedBy: idColumn(),
    status: p.text().$type<ExportStatus>().default('queued'),
    /** Why it is `failed` or `canceled`; null otherwise. */
    statusDetail: p.text().strictNullable(),
    /**
     * S3 multipart upload of the worker that writes the archive; null before the start and after the end. A worker that
     * takes over starts another upload, so that the former worker can neither add a part nor end the export.
     */
    uploadId: p.text().strictNullable(),
    storageKey: p.text(),
    rowsDone: p.bigint('number').default(0),
    rowsTotal: p.bigint('number').default(0),
    filesDone: p.bigint('number').default(0),
    filesTotal: p.bigint('number').default(0),
    /** Archive size so far; once ready, the final size. */
    sizeBytes: p.bigint('number').default(0),
    startedAt: timestamp().strictNullable(),
    completedAt: timestamp().strictNullable(),
    /**
     * When a ready archive stops being available. The object is deleted a day later, so that issued links keep
     * working.
     */
    expiresAt: timestamp().strictNullable(),
    /** When the reconciler last checked the row's run; null if it never had to. */
    reconciledAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export type Export = InferEntity<typeof ExportEntity>;
