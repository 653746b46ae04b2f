import { defineEntity, p } from '@mikro-orm/core';
import { primaryId, timestamp } from '../../platform/database/columns.ts';

/**
 * Mail to the feedback address without a valid token. It belongs to no organization and has no effect. Kept for
 * operators, limited in time and number (`storeUnattributedReport`), because anyone can write to the address.
 */
export const UnattributedReportEntity = defineEntity({
  name: 'UnattributedReport',
  tableName: 'unattributed_reports',
  indexes: [{ properties: ['rawKey'] }, { properties: ['receivedAt'] }],
  properties: {
    id: primaryId(),
    rawKey: p.text(),
    sizeBytes: p.integer(),
    mailFrom: p.text(),
    clientIp: p.text(),
    helo: p.text().strictNullable(),
    receivedAt: timestamp(),
  },
});
