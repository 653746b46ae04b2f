import type { Pool, PoolClient } from 'pg';
import { isTracing, markFailed, startSpan } from './span.ts';

/** Gives each statement of the pool a span, if a trace is in progress. Costs nothing without tracing. */
export function traceQueries(pool: Pick<Pool, 'on'>): void {
  if (isTracing()) pool.on('connect', traceClient);
}

type Query = (...input: unknown[]) => unknown;

function traceClient(client: PoolClient): void {
  const query = client.query.bind(client) as Query;
  const traced: Query = (...input) => {
    const [statement] = input;
    const text = typeof statement === 'string' ? statement : (statement as { text?: unknown } | null)?.text;
    const span =
      typeof text === 'string'
        ? startSpan({
            name: summarizeStatement(text),
            kind: 'client',
            attributes: { 'db.system': 'postgresql', 'db.operation.name': operationOf(text) },
          })
        : undefined;
    const result = query(...input);
    if (!span) return result;
    // Only statements that are awaited; cursors and callbacks are not used.
    if (!(result instanceof Promise)) span.end();
    else
      result.then(
        () => span.end(),
        (error: unknown) => {
          markFailed(span, error);
          span.end();
        },
      );
    return result;
  };
  Object.assign(client, { query: traced });
}

const MAX_TABLES = 4;
/** Statements that insert many rows are long; the tables are at the start. */
const MAX_SUMMARIZED_CHARACTERS = 4_000;

/**
 * A name such as `select messages environments`: the operation and the tables. The text itself is not part of a span, so
 * that no literal can be.
 */
export function summarizeStatement(text: string): string {
  const plain = text.slice(0, MAX_SUMMARIZED_CHARACTERS).replace(/'[^']*(?:'|$)/g, "''");
  const named = [...plain.matchAll(/\b(?:from|join|into|update)\s+"?([a-z_][a-z0-9_]*)"?(?!\w|\()/gi)];
  const tables = [...new Set(named.map(([, table = '']) => table.toLowerCase()))];
  const known = tables.filter((table) => !NOT_TABLES.has(table)).slice(0, MAX_TABLES);
  return [operationOf(text), ...known].join(' ');
}

const NOT_TABLES = new Set(['set', 'select', 'lateral', 'only', 'now', 'skip', 'nowait', 'of', 'unnest']);

const operationOf = (text: string): string =>
  /^[\s(]*([a-z]+)/i.exec(text.slice(0, 200))?.[1]?.toLowerCase() ?? 'statement';
