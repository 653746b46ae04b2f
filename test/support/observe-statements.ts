import type { Kysely, KyselyPlugin } from 'kysely';
import type { Db, Tables } from '../../platform/database/tables.ts';

/** The same statements, with calls before and after each. If `before` throws, the statement does not run. */
export function observeStatements(
  db: Db,
  { before, after }: { before?: () => void; after?: () => Promise<void> },
): Db {
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => {
      before?.();
      return node;
    },
    async transformResult({ result }) {
      await after?.();
      return result;
    },
  };
  return (db as Kysely<Tables>).withPlugin(plugin);
}
