import { isTracing, withSpan } from './span.ts';

/** Gives a statement a span, if a trace is in progress. Costs nothing without tracing. */
export function inStatementSpan<Result>(text: string, run: () => Promise<Result>): Promise<Result> {
  if (!isTracing()) return run();
  return withSpan(
    {
      name: summarizeStatement(text),
      kind: 'client',
      attributes: { 'db.system': 'postgresql', 'db.operation.name': operationOf(text) },
    },
    run,
  );
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
