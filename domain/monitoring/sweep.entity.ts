import { defineEntity, p } from '@mikro-orm/core';
import { timestamp } from '../../platform/database/columns.ts';

/** When recurring work last succeeded, by its name. Belongs to no organization. */
export const SweepEntity = defineEntity({
  name: 'Sweep',
  tableName: 'sweeps',
  properties: {
    name: p.text().primary(),
    finishedAt: timestamp(),
  },
});
