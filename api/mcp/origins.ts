import type { FastifyRequest } from 'fastify';
import { type Config, splitList } from '../../platform/config.ts';
import { AppError } from '../../platform/errors.ts';

const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Refuses requests for another host, and of web pages of another origin: a page could reach a service on a private network
 * by a name that it makes resolve to it (DNS rebinding).
 *
 * @throws AppError `permission_denied`.
 */
export type OriginCheck = (request: FastifyRequest) => void;

export function createOriginCheck(config: Pick<Config, 'PUBLIC_URL' | 'MCP_ALLOWED_ORIGINS'>): OriginCheck {
  const own = new URL(config.PUBLIC_URL);
  const isLocal = LOOPBACK_HOSTS.includes(own.hostname);
  const hosts = new Set(isLocal ? LOOPBACK_HOSTS : [own.hostname]);
  const origins = new Set([own.origin, ...splitList(config.MCP_ALLOWED_ORIGINS)]);

  function isOwn(origin: string): boolean {
    if (origins.has(origin)) return true;
    return isLocal && URL.canParse(origin) && LOOPBACK_HOSTS.includes(new URL(origin).hostname);
  }

  return ({ host, headers }) => {
    // The port is that of a proxy or of a forwarded port.
    const hostname = URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : '';
    if (!hosts.has(hostname))
      throw refused(
        'The Host header names another host than this service.',
        `Connect to ${own.origin}/mcp, the PUBLIC_URL of the service.`,
      );
    if (headers.origin !== undefined && !isOwn(headers.origin))
      throw refused(
        'Web pages of this origin may not call tools.',
        'Ask the operator of the service to add the origin to MCP_ALLOWED_ORIGINS.',
      );
  };
}

function refused(detail: string, fix: string): AppError {
  return new AppError('permission_denied', { detail, fix });
}
