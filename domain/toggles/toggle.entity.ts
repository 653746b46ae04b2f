import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import type { ToggleName } from './toggles.ts';

/** A switch of the whole service that staff have changed. A switch without a row is on. */
export const ToggleEntity = defineEntity({
  name: 'Toggle',
  tableName: 'toggles',
  properties: {
    name: p.text().$type<ToggleName>().primary(),
    enabled: p.boolean(),
    /** Reason for the last change. */
    note: p.text(),
    /** Staff member who changed it last. */
    changedBy: idColumn(),
    changedAt: timestamp(),
  },
});

export type Toggle = InferEntity<typeof ToggleEntity>;
