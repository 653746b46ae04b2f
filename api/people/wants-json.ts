import type { FastifyRequest } from 'fastify';

/** Whether a route that browsers open answers a program: it accepts JSON, and no pages. */
export function wantsJson({ headers }: FastifyRequest): boolean {
  const accept = headers.accept ?? '';
  return accept.includes('application/json') && !accept.includes('text/html');
}
