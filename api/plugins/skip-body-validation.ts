import type { FastifySchemaCompiler } from 'fastify';

/**
 * A validator compiler for a route whose body is a stream: the schema of the body only documents it, since the handler
 * checks the body while reading it.
 */
export function skipBodyValidation(
  compiler: FastifySchemaCompiler<object> | undefined,
): FastifySchemaCompiler<object> {
  return (route) => {
    if (route.httpPart === 'body' || !compiler) return () => true;
    return compiler(route);
  };
}
