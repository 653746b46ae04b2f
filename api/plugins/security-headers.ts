import type { FastifyInstance } from 'fastify';

/** Pages of this service have inline styles, but no scripts, frames, forms or external resources. */
const PAGE_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/** Two years, as browsers' preload lists require. */
const HSTS = 'max-age=63072000; includeSubDomains';

/**
 * Adds security headers to every response. API responses contain mail and keys, so caches must not store them. Headers
 * that a route or plugin has set are kept.
 *
 * @param publicUrl HSTS is sent only if clients reach the service through TLS.
 */
export function installSecurityHeaders(app: FastifyInstance, { publicUrl }: { publicUrl: string }): void {
  const isTls = publicUrl.startsWith('https://');
  app.addHook('onSend', async (request, reply) => {
    const setDefault = (name: string, value: string) => {
      if (!reply.hasHeader(name)) reply.header(name, value);
    };
    reply.header('x-content-type-options', 'nosniff');
    setDefault('referrer-policy', 'no-referrer');
    if (isTls) reply.header('strict-transport-security', HSTS);
    if (!/^\/(?:docs|openapi|health)\b/.test(request.url)) setDefault('cache-control', 'no-store');
    if (String(reply.getHeader('content-type')).startsWith('text/html'))
      setDefault('content-security-policy', PAGE_POLICY);
  });
}
