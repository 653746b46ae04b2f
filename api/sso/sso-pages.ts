import type { FastifyRequest } from 'fastify';

/** Whether the client is a program. A browser gets a redirect or a page instead of JSON. */
export function wantsJson({ headers }: FastifyRequest): boolean {
  return /\bapplication\/(?:problem\+)?json\b/.test(
    `${headers.accept ?? ''} ${headers['content-type'] ?? ''}`,
  );
}
