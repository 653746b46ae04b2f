import { defineEntity, p } from '@mikro-orm/core';
import { timestamp } from '../../platform/database/columns.ts';

/** A running process of the service. It belongs to no organization. */
export const ProcessEntity = defineEntity({
  name: 'Process',
  tableName: 'processes',
  properties: {
    /** Random, new with each start. */
    id: p.text().primary(),
    /** Name of its command, such as `api` or `outbound`. */
    name: p.text(),
    version: p.text(),
    host: p.text(),
    startedAt: timestamp(),
    /** Renewed every {@link HEARTBEAT_INTERVAL_MS}. */
    lastSeenAt: timestamp(),
  },
});

export const HEARTBEAT_INTERVAL_MS = 15_000;
/** A process that is silent for this long has ended without saying so. */
export const SILENT_AFTER_MS = 60_000;
