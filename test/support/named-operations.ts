/** An operation that a text names: `POST /api/v1/drafts/{id}/send`. */
export interface NamedOperation {
  /** Undefined for a path without a method. */
  method: string | undefined;
  path: string;
}

const METHODS = 'GET|POST|PUT|PATCH|DELETE';
/** A segment of letters, a parameter in braces (`{}` for one of a template), or the two together. */
const PATH = String.raw`(?:/(?:[\w.@%-]|…|\{[^}\s]*\})+)+`;
const NAMED = new RegExp(String.raw`\b(?:(${METHODS}) )(${PATH})|(?<![\w{}/.:])(/api/v1${PATH})`, 'g');
/** `GET and PUT /api/v1/org/limits` */
const SEVERAL = new RegExp(String.raw`\b(${METHODS}) and (${METHODS}) (${PATH})`, 'g');

/** Lists the operations that a text names. The values of a template's expressions must have become `{}`. */
export function listNamedOperations(text: string): NamedOperation[] {
  const several = [...text.matchAll(SEVERAL)].map(([, method, , path = '']) => ({
    method,
    path: trim(path),
  }));
  const named = [...text.matchAll(NAMED)].map(([, method, path, bare]) => ({
    method,
    path: trim(path ?? bare ?? ''),
  }));
  return [...several, ...named];
}

/** The end of a sentence is no part of a path. */
const trim = (path: string) => path.replace(/[.…]+$/, '');

/** A path of the OpenAPI description, as a key: `/drafts/{}/send`. */
const toSegments = (path: string) => path.split('/').slice(1);
const isOpen = (segment: string | undefined) => segment === undefined || /^\{|…/.test(segment);

/**
 * Whether an operation exists. Parameters match every segment.
 *
 * @param operations of the OpenAPI description.
 */
export function existsOperation(
  { method, path }: NamedOperation,
  operations: readonly { method: string; path: string }[],
): boolean {
  const segments = toSegments(path);
  return operations.some((operation) => {
    if (method !== undefined && operation.method !== method) return false;
    const known = toSegments(operation.path);
    if (known.length !== segments.length) return false;
    return known.every((name, index) => {
      const segment = segments[index];
      return name === segment || isOpen(name) || isOpen(segment);
    });
  });
}
