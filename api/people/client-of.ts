import type { FastifyRequest } from 'fastify';
import type { Client } from '../../domain/people/client.ts';

/** Who makes a request without a session, for the list of sessions and the audit log. */
export function clientOf({ ip, headers, id }: FastifyRequest): Client {
  return { ip, userAgent: headers['user-agent']?.slice(0, 300) ?? null, requestId: id };
}
