import type { Operations } from './operations.ts';
import { TOOLS } from './tools/index.ts';

/** Replaces the names of operations in a text with the names of tools, the only ones that a model can call. */
export type NameTools = (text: string) => string;

export function createToolNames(operations: Operations): NameTools {
  const named = TOOLS.flatMap(({ name, operations: ids }) =>
    ids.map((id) => ({ name, pattern: patternOf(operations.describe(id)) })),
  );
  return (text) => {
    const renamed = named.reduce(
      (said, { name, pattern }) => said.replace(pattern, `the tool ${name}`),
      text,
    );
    return renamed.replaceAll('Idempotency-Key', 'idempotency_key');
  };
}

/** The operation as texts name it: `POST /api/v1/messages/{id}/reply`, or with an id. */
function patternOf(operation: string): RegExp {
  const path = operation.replace(/:\w+/g, '(?:\\{\\w+\\}|[a-z]{3}_\\w+)');
  return new RegExp(`${path}(?![\\w/])`, 'g');
}
