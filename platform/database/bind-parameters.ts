import type { MikroORM } from '@mikro-orm/postgresql';
import { quoteText } from './quote-text.ts';
import { redactDatabaseError } from './redact-database-error.ts';
import type { Sql } from './sql.ts';

export interface BoundStatement {
  /** With placeholders: `$1`, `$2`, … */
  statement: string;
  values: string[];
}

/**
 * Makes the ORM send text and bytes as bound parameters. By itself it inlines every value into the statement, and
 * PostgreSQL logs the statements that fail: its log would contain subjects, bodies and addresses. Numbers, booleans and
 * times stay inline, so that they keep their types. Also removes values from the errors of statements.
 *
 * @returns the same conversion, for statements that do not pass through the ORM.
 */
export function bindParameters(orm: MikroORM): (query: Sql) => BoundStatement {
  const bind = createBinder(orm);
  const connection = orm.em.getConnection();
  const execute = connection.execute.bind(connection);
  const executeBound: typeof connection.execute = async (query, params, method, context, logging) => {
    const { statement, values } = bind(query, params);
    const client = context ?? connection.getClient();
    const withValues = {
      executeQuery: (compiled: CompiledQuery, options: unknown) =>
        client.executeQuery({ ...compiled, parameters: values }, options as never),
    };
    try {
      return await execute(statement, [], method, withValues as unknown as typeof context, logging);
    } catch (error) {
      throw redactDatabaseError(error);
    }
  };
  const stream: typeof connection.stream = () => {
    throw new Error('Streamed queries are not supported: their values would be part of the statement');
  };
  Object.assign(connection, { execute: executeBound, stream });
  return bind;
}

type CompiledQuery = Parameters<
  ReturnType<ReturnType<MikroORM['em']['getConnection']>['getClient']>['executeQuery']
>[0];
type Execute = ReturnType<MikroORM['em']['getConnection']>['execute'];

/** Formats statements with the ORM's own code, which is synchronous, and collects the values instead of quoting them. */
function createBinder(
  orm: MikroORM,
): (query: Parameters<Execute>[0], params?: Parameters<Execute>[1]) => BoundStatement {
  const platform = orm.em.getPlatform();
  const quote = platform.escape.bind(platform);
  let collected: string[] | undefined;
  Object.assign(platform, {
    escapeLiteral: quoteText,
    escape(value: unknown): string {
      if (!collected) return quote(value);
      if (typeof value === 'string' || typeof value === 'bigint') return `$${collected.push(String(value))}`;
      if (ArrayBuffer.isView(value)) return `$${collected.push(toByteaText(value))}`;
      return quote(value);
    },
  });
  return (query, params = []) => {
    const fragment = typeof query === 'object' && 'toRaw' in query ? query.toRaw() : query;
    const values: string[] = [];
    collected = values;
    try {
      const statement =
        typeof fragment === 'string'
          ? platform.formatQuery(fragment, requireList(params))
          : platform.formatQuery(fragment.sql, fragment.params);
      return { statement, values };
    } finally {
      collected = undefined;
    }
  };
}

function requireList(params: Parameters<Execute>[1]): readonly unknown[] {
  if (Array.isArray(params)) return params;
  throw new Error('Named parameters are not supported; use the `sql` template');
}

/** The hex format of PostgreSQL's bytea (manual, section 8.4.1). */
function toByteaText({ buffer, byteOffset, byteLength }: ArrayBufferView): string {
  return `\\x${Buffer.from(buffer, byteOffset, byteLength).toString('hex')}`;
}
