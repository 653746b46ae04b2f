import type { FastifySchemaCompiler } from 'fastify';

/**
 * Wraps the validator compiler for a route whose body is a stream. The schema of the body is only documentation, because
 * the handler checks the body while reading it.
 */
export function skipBodyValidation(
  compiler: FastifySchemaCompiler<object> | undefined,
): FastifySchemaCompiler<object> {
  return (route) => {
    if (route.httpPart === 'body' || !compiler) return () => true;
    return compiler(route);
  };
}
