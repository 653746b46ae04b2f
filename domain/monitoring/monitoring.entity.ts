import { defineEntity, p } from '@mikro-orm/core';
import { timestamp } from '../../platform/database/columns.ts';

/** A running process of the service. It belongs to no organization. */
export const ProcessEntity = defineEntity({
  name: 'Process',
  tableName: 'processes',
  properties: {
    /** Random, new with each start. */
    id: p.text().primary(),
    /** Name of the command, such as `api` or `outbound`. */
    name: p.text(),
    version: p.text(),
    host: p.text(),
    startedAt: timestamp(),
    /** Renewed every 15 seconds. */
    lastSeenAt: timestamp(),
  },
});

/** When recurring work last succeeded, by its name. Belongs to no organization. */
export const SweepEntity = defineEntity({
  name: 'Sweep',
  tableName: 'sweeps',
  properties: {
    name: p.text().primary(),
    finishedAt: timestamp(),
  },
});
