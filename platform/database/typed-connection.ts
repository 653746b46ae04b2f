import {
  type CompiledQuery,
  type DatabaseConnection,
  DefaultQueryExecutor,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from 'kysely';
import pg, { type QueryConfig } from 'pg';
import { inStatementSpan } from '../tracing/statement-spans.ts';
import { nameOfPrepared } from './prepared.ts';
import { redactDatabaseError } from './redact-database-error.ts';
import type { Db, Tables } from './tables.ts';

/** A client or a pool, which parses values with {@link TYPES}. */
export interface Connection {
  query(statement: string | QueryConfig, values?: unknown[]): Promise<pg.QueryResult>;
}

/** OIDs of PostgreSQL's types (pg_type.dat). */
const INT8 = 20;
const INT8_ARRAY = 1016;
const DATE = 1082;
const INTERVAL = 1186;

const parseText = (text: string) => text;

/** Times become `Date`, `bigint` a number, dates and intervals stay text. Everything else is parsed as `pg` does. */
const PARSERS = new Map<number, (text: string) => unknown>([
  [INT8, parseInteger],
  [INT8_ARRAY, (text) => (pg.types.getTypeParser(INT8_ARRAY as never)(text) as string[]).map(parseInteger)],
  [DATE, parseText],
  [INTERVAL, parseText],
]);

/** For the option `types` of a pool. */
export const TYPES = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    PARSERS.get(oid) ?? pg.types.getTypeParser(oid, format as 'text'),
};

/** @throws RangeError for a number that a `number` cannot hold exactly. */
function parseInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError('An integer of PostgreSQL exceeds 2^53');
  return value;
}

const dialect = {
  createAdapter: () => new PostgresAdapter(),
  createDriver: () => new DummyDriver(),
  createIntrospector: (db: Kysely<never>) => new PostgresIntrospector(db),
  createQueryCompiler: () => new PostgresQueryCompiler(),
};
const adapter = dialect.createAdapter();
const compiler = dialect.createQueryCompiler();
const driver = dialect.createDriver();

/** Types the statements of a connection, or of a pool, in which each commits by itself. */
export function typeConnection(connection: Connection): Db {
  const typed: DatabaseConnection = {
    async executeQuery<Row>({ sql: text, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
      const { command, rowCount, rows } = await runStatement(connection, text, parameters);
      return CHANGES.has(command) ? { rows, numAffectedRows: BigInt(rowCount ?? 0) } : { rows };
    },
    streamQuery() {
      throw new Error('Rows are not streamed: read them in pages');
    },
  };
  const executor = new DefaultQueryExecutor(compiler, adapter, {
    provideConnection: (consumer) => consumer(typed),
  });
  return new Kysely<Tables>({ config: { dialect }, dialect, driver, executor });
}

const CHANGES = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE']);

/** Runs one statement in a span. Values are bound, never part of the text, and errors carry no values. */
export function runStatement(
  connection: Connection,
  text: string,
  values: readonly unknown[] = [],
): Promise<pg.QueryResult> {
  return inStatementSpan(text, async () => {
    try {
      const name = nameOfPrepared(text);
      // Never written to by pg, which copies the options of a statement, but not its text.
      const bound = values as unknown[];
      return await (name ? connection.query({ text, name }, bound) : connection.query(text, bound));
    } catch (error) {
      throw redactDatabaseError(error);
    }
  });
}
