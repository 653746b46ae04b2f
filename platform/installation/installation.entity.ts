import { defineEntity, p } from '@mikro-orm/core';
import { timestamp } from '../database/columns.ts';

/** The PostgreSQL cluster that this database was last migrated in. In another cluster it is a copy: see `restore.entity.ts`. */
export const InstallationEntity = defineEntity({
  name: 'Installation',
  tableName: 'installation',
  properties: {
    /** Always `this`: there is one row. */
    id: p.text().primary(),
    /** `system_identifier` of `pg_control_system()`, unique for each `initdb`. */
    systemIdentifier: p.text(),
    /** See `progress-marker.ts`. */
    progress: p.bigint('number').defaultRaw('0'),
    advancedAt: timestamp().strictNullable(),
  },
});
