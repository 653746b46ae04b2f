import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { timestamp } from '../database/columns.ts';

/** The database was restored from a backup. Until it is reconciled, no worker takes work, since mail could be sent again. */
export const RestoreEntity = defineEntity({
  name: 'Restore',
  tableName: 'restores',
  indexes: [
    {
      name: 'restores_pending_index',
      expression: 'create index "restores_pending_index" on "restores" ("id") where "reconciled_at" is null',
    },
  ],
  properties: {
    id: p.bigint('string').primary().autoincrement(),
    /** What happened after this time is missing from the database. Null if the time is unknown. */
    restoredTo: timestamp().strictNullable(),
    /** Rows that were created later are not affected. */
    markedAt: timestamp(),
    reconciledAt: timestamp().strictNullable(),
    /** What `npm run restore:reconcile` did, by kind. */
    counts: p.json().$type<Record<string, number>>().strictNullable(),
  },
});

export type Restore = InferEntity<typeof RestoreEntity>;
