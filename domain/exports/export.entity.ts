import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId, timestamp, updatedAt } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { ArchivePosition } from './archive-position.ts';

/** `queued` waits for its run. `expired`: the archive was offered for its time, or given up before, and is gone. */
export const EXPORT_STATUSES = ['queued', 'running', 'ready', 'failed', 'canceled', 'expired'] as const;
export type ExportStatus = (typeof EXPORT_STATUSES)[number];

/**
 * One archive of all an organization has. While it is written the row says how far it came: a worker that takes over
 * goes on from `position`, with `partBuffer` as the first bytes of the next part.
 */
export const ExportEntity = defineEntity({
  name: 'Export',
  tableName: 'exports',
  policies: tenantPolicies(),
  indexes: [
    { properties: ['organizationId', 'id'] },
    // One at a time: whoever asks meanwhile joins it.
    {
      name: 'exports_running_unique',
      expression: `create unique index "exports_running_unique" on "exports" ("org_id") where "status" in ('queued', 'running')`,
    },
    {
      name: 'exports_cleanup_index',
      expression: `create index "exports_cleanup_index" on "exports" ("updated_at") where "status" = 'ready' or "upload_id" is not null`,
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** The credential that asked for it first. */
    requestedBy: idColumn(),
    status: p.text().$type<ExportStatus>().default('queued'),
    /** Why it is `failed` or `canceled`; empty otherwise. */
    statusDetail: p.text().strictNullable(),
    /** Rises each time the position is written down: of two workers the one that took over goes on. */
    checkpoint: p.integer().default(0),
    /** Of the parts put so far, as S3 names it; empty before the first and once nothing of it is left. */
    uploadId: p.text().strictNullable(),
    storageKey: p.text(),
    /** Bytes of each part but the last. */
    partSizeBytes: p.integer().default(0),
    /** Empty before the writing has begun and after it has ended. */
    position: p.json().$type<ArchivePosition>().strictNullable().lazy(),
    partBuffer: p.blob().strictNullable().lazy(),
    rowsDone: p.bigint('number').default(0),
    rowsTotal: p.bigint('number').default(0),
    filesDone: p.bigint('number').default(0),
    filesTotal: p.bigint('number').default(0),
    /** Of the archive so far; of a ready one, all of it. */
    sizeBytes: p.bigint('number').default(0),
    startedAt: timestamp().strictNullable(),
    completedAt: timestamp().strictNullable(),
    /** Until when a ready one is offered; its bytes go a day later, so that links given out last work. */
    expiresAt: timestamp().strictNullable(),
    /** When the reconciler last looked after the row's run; empty while everything goes its way. */
    reconciledAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export type Export = InferEntity<typeof ExportEntity>;
