import type { TableOf } from '../platform/database/tables.ts';
import type { entities } from './entities.ts';

type Entity = (typeof entities)[number];
type TablesOfEntities = { [Each in Entity as Each['tableName']]: TableOf<Each> };

declare module '../platform/database/tables.ts' {
  interface Tables extends TablesOfEntities {}
}
