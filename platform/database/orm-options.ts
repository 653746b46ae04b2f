import type { EntityName } from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import type { Options } from '@mikro-orm/postgresql';

/** MikroORM describes the schema and runs migrations; statements run on the pool of `Database`. */
export function ormOptions({ url, entities }: { url: string; entities: EntityName[] }): Options {
  return {
    clientUrl: url,
    entities,
    pool: { min: 0, max: 2 },
    extensions: [Migrator],
    migrations: { path: new URL('../../migrations', import.meta.url).pathname, snapshot: false },
    discovery: { warnWhenNoEntities: false },
    driverOptions: { application_name: 'agent-email' },
  };
}
