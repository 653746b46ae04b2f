import { defineEntity, p } from '@mikro-orm/core';
import { idColumn } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { ExportEntity } from './export.entity.ts';

/**
 * What writing an archive has to remember to its end, a checkpoint a row: the part that was put, and what the entries
 * in it leave for the central directory, which comes last and is as long as there are messages. Gone with the end.
 */
export const ExportSegmentEntity = defineEntity({
  name: 'ExportSegment',
  tableName: 'export_segments',
  policies: tenantPolicies(),
  properties: {
    exportId: () => p.manyToOne(ExportEntity).mapToPk().primary().deleteRule('cascade'),
    number: p.integer().primary(),
    organizationId: idColumn().fieldName('org_id'),
    /** Empty where a checkpoint lies between two parts. */
    partNumber: p.integer().strictNullable(),
    etag: p.text().strictNullable(),
    /** Records of the central directory. */
    centralDirectory: p.blob(),
    /** Lines that tell of files storage no longer has. */
    missingFiles: p.text(),
  },
});
