import { defineEntity, p } from '@mikro-orm/core';

/** The PostgreSQL cluster that this database was last migrated in. In another cluster it is a copy: see `restore.entity.ts`. */
export const InstallationEntity = defineEntity({
  name: 'Installation',
  tableName: 'installation',
  properties: {
    /** Always `this`: there is one row. */
    id: p.text().primary(),
    /** `system_identifier` of `pg_control_system()`, unique for each `initdb`. */
    systemIdentifier: p.text(),
  },
});
