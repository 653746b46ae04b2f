import { defineEntity, p } from '@mikro-orm/core';
import { primaryId, timestamp } from '../../platform/database/columns.ts';

/**
 * A mail that came to the feedback address and carries no token of ours: nobody knows whose it is, so it changes
 * nothing. Kept for operators, for a while and up to a number (`storeUnattributedReport`): anybody can write there.
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
