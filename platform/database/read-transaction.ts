import type { MikroORM } from '@mikro-orm/postgresql';
import type { Pool, PoolClient } from 'pg';
import type { BoundStatement } from './bind-parameters.ts';
import type { RowReader } from './find-rows.ts';
import { ORGANIZATION_VARIABLE } from './policies.ts';
import { quoteText } from './quote-text.ts';
import { redactDatabaseError } from './redact-database-error.ts';
import type { Sql } from './sql.ts';

/** Runs statements on the connections of the ORM's pool, without its entity manager. */
export interface Reads {
  /** Runs `work` in a read-only transaction that sees only one organization's rows. */
  transaction<T>(organizationId: string, work: (reader: RowReader) => Promise<T>): Promise<T>;
  /** Runs one statement, which commits by itself. */
  query<Row>(query: Sql): Promise<Row[]>;
}

type Connection = Pick<PoolClient, 'query'>;

export function createReads(orm: MikroORM, bind: (query: Sql) => BoundStatement): Reads {
  const getPool = (): Promise<Pool> => orm.driver.getConnection().getNativeClient();
  const metadata = orm.getMetadata();

  async function execute<Rows>(connection: Connection, query: Sql): Promise<Rows> {
    const { statement, values } = bind(query);
    try {
      return (await connection.query(statement, values)).rows as Rows;
    } catch (error) {
      throw redactDatabaseError(error);
    }
  }

  return {
    async transaction(organizationId, work) {
      const connection = await (await getPool()).connect();
      try {
        await connection.query(beginAs(organizationId));
        const value = await work({
          execute: (query) => execute(connection, query),
          getMetadata: () => metadata,
        });
        await connection.query('commit');
        connection.release();
        return value;
      } catch (error) {
        await connection.query('rollback').then(
          () => connection.release(),
          () => connection.release(true),
        );
        throw error;
      }
    },
    query: async <Row>(query: Sql) => execute<Row[]>(await getPool(), query),
  };
}

/** Both statements in one round trip. */
function beginAs(organizationId: string): string {
  return `begin read only; select set_config('${ORGANIZATION_VARIABLE}', ${quoteText(organizationId)}, true)`;
}
