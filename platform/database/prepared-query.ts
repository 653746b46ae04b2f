import pg, { type Connection as PgConnection, type PoolClient, type QueryConfig } from 'pg';

/** What pg keeps of a result. */
interface Result {
  fields: pg.FieldDef[];
  _parsers: unknown;
  _prebuiltEmptyResultObject: unknown;
}

/** The part of pg's `Query` that is not in its types. */
interface HiddenQuery extends pg.Query {
  readonly name: string;
  _result: Result;
  _accumulateRows: boolean;
  prepare(connection: PgConnection): void;
  handleReadyForQuery(connection: PgConnection): void;
}
const BaseQuery = pg.Query as unknown as new (config: QueryConfig) => HiddenQuery;

interface KnownConnection {
  /** By the names of statements. */
  results: Map<string, Result>;
  /** The connection, but it does not ask for the columns. */
  undescribed: PgConnection;
}

const connections = new WeakMap<PgConnection, KnownConnection>();

function knownOf(connection: PgConnection): KnownConnection {
  const known = connections.get(connection) ?? {
    results: new Map(),
    undescribed: Object.create(connection, { describe: { value: () => undefined } }),
  };
  connections.set(connection, known);
  return known;
}

/**
 * A prepared statement. A connection describes its columns once: otherwise PostgreSQL sends them each time, and parsing
 * them is a tenth of the cost of a small read. They cannot change, because PostgreSQL then refuses to run the statement
 * ("cached plan must not change result type").
 *
 * Needed until pg keeps the columns of prepared statements itself.
 */
class PreparedQuery extends BaseQuery {
  override prepare(connection: PgConnection): void {
    const { results, undescribed } = knownOf(connection);
    const known = results.get(this.name);
    if (known) {
      Object.assign(this._result, known);
      this._accumulateRows = true;
    }
    super.prepare(known ? undescribed : connection);
  }

  override handleReadyForQuery(connection: PgConnection): void {
    const { fields, _parsers, _prebuiltEmptyResultObject } = this._result;
    knownOf(connection).results.set(this.name, { fields, _parsers, _prebuiltEmptyResultObject });
    super.handleReadyForQuery(connection);
  }
}

/** Runs a statement, which is prepared if it has a name. */
export function sendStatement(
  sender: Pick<PoolClient, 'query'>,
  statement: string | QueryConfig,
  values?: unknown[],
): Promise<pg.QueryResult> {
  if (typeof statement === 'string') return sender.query(statement, values);
  const query = new PreparedQuery({ ...statement, values });
  return new Promise((resolve, reject) => {
    const settle = (error: Error | undefined, result: pg.QueryResult) =>
      error ? reject(error) : resolve(result);
    (sender.query as (query: pg.Query, settle: unknown) => void).call(sender, query, settle);
  });
}
