import { entities } from './domain/entities.ts';
import { databaseOptions } from './platform/database/database.ts';

/** For the MikroORM command line: `npm run migration:create`. */
export default {
  ...databaseOptions({
    url: process.env.MIGRATION_DATABASE_URL ?? 'postgresql://127.0.0.1/agent_email',
    poolSize: 2,
    entities,
  }),
};
