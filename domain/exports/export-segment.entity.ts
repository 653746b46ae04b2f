import { defineEntity, p } from '@mikro-orm/core';
import { idColumn } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { ExportEntity } from './export.entity.ts';

/**
 * Data saved with a checkpoint until the archive is complete: an uploaded part, and the central directory records of
 * the entries written since the last checkpoint. The central directory comes last and grows with the number of
 * messages.
 */
export const ExportSegmentEntity = defineEntity({
  name: 'ExportSegment',
  tableName: 'export_segments',
  policies: tenantPolicies(),
  properties: {
    exportId: () =>
      p.manyToOne(ExportEntity).mapToPk().fieldName('export_id').primary().deleteRule('cascade'),
    number: p.integer().primary(),
    organizationId: idColumn().fieldName('org_id'),
    /** Null for a checkpoint without an uploaded part. */
    partNumber: p.integer().strictNullable(),
    etag: p.text().strictNullable(),
    /** Records of the central directory. */
    centralDirectory: p.blob(),
    /** JSON lines for files that storage no longer has. */
    missingFiles: p.text(),
  },
});
