import { MikroORM } from '@mikro-orm/postgresql';
import { entities } from '../../domain/entities.ts';
import { ormOptions } from '../../platform/database/orm-options.ts';
import { useResource } from './use-resource.ts';

/** What MikroORM makes of the entities: metadata, and the schema of the database at `url`. */
export const useOrm = (url: () => string): MikroORM =>
  useResource(
    () => MikroORM.init(ormOptions({ url: url(), entities })),
    (orm) => orm.close(true),
  );
