import type { FastifyRequest } from 'fastify';
import { type Config, splitList } from '../../platform/config.ts';
import { AppError } from '../../platform/errors.ts';

/** RFC 9110 section 7.2. A URL parser would accept a user or a path in it, and other notations of an address. The port may be that of a proxy. */
const HOST = /^(\[[\da-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i;
const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '[::1]'];
const PREFLIGHT_SECONDS = 600;

/** What a browser asks before it lets a page send a header such as Authorization. */
export const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'POST',
  'access-control-allow-headers':
    'authorization, content-type, accept, x-env-id, mcp-protocol-version, mcp-method, mcp-name, last-event-id',
  'access-control-max-age': String(PREFLIGHT_SECONDS),
};

/**
 * Which hosts and origins may reach the tools. A page of another origin could reach a service on a private network by a name
 * that it makes resolve to it (DNS rebinding).
 */
export interface OriginRules {
  /** @throws AppError `permission_denied` for another host, and for a web page of another origin. */
  require(request: FastifyRequest): void;
  /** CORS headers that let a page of an allowed origin read the answer, without cookies. */
  headersFor(request: FastifyRequest): Record<string, string>;
}

export function createOriginRules(config: Pick<Config, 'PUBLIC_URL' | 'MCP_ALLOWED_ORIGINS'>): OriginRules {
  const own = new URL(config.PUBLIC_URL);
  const isLocal = LOOPBACK_HOSTS.includes(own.hostname);
  const hosts = new Set(isLocal ? LOOPBACK_HOSTS : [own.hostname]);
  const origins = new Set([own.origin, ...splitList(config.MCP_ALLOWED_ORIGINS)]);

  function isAllowed(origin: string): boolean {
    if (origins.has(origin)) return true;
    return isLocal && URL.canParse(origin) && LOOPBACK_HOSTS.includes(new URL(origin).hostname);
  }

  return {
    require({ host, headers, raw }) {
      const [, hostname = ''] = HOST.exec(host) ?? [];
      if (!hosts.has(hostname.toLowerCase()) || countHosts(raw) > 1)
        throw refused(
          'The Host header names another host than this service.',
          `Connect to ${own.origin}/mcp, the PUBLIC_URL of the service.`,
        );
      if (headers.origin !== undefined && !isAllowed(headers.origin))
        throw refused(
          'Web pages of this origin may not call tools.',
          'Ask the operator of the service to add the origin to MCP_ALLOWED_ORIGINS.',
        );
    },
    headersFor({ headers: { origin } }): Record<string, string> {
      if (origin === undefined || !isAllowed(origin)) return {};
      return {
        vary: 'origin',
        'access-control-allow-origin': origin,
        'access-control-expose-headers': 'www-authenticate, retry-after, x-request-id',
      };
    },
  };
}

/** A proxy may have read another one than Node, which takes the first (RFC 9112 section 3.2). */
const countHosts = ({ rawHeaders }: FastifyRequest['raw']): number =>
  rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length;

function refused(detail: string, fix: string): AppError {
  return new AppError('permission_denied', { detail, fix });
}
