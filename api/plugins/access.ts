import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import {
  type Authentication,
  type AuthenticationService,
  unauthenticated,
} from '../../domain/api-keys/authentication.service.ts';
import type { Permission } from '../../domain/identity/permissions.ts';
import { requirePermission, type Scope } from '../../domain/identity/scope.ts';
import { AppError } from '../../platform/errors.ts';
import type { RateLimit, RateLimiter, RateVerdict } from '../../platform/rate-limit/rate-limiter.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who makes the request and what they may access; unset on public routes. */
    scope: Scope;
    /**
     * Checks the credential again, for responses that stay open.
     *
     * @throws AppError the error a new request would get.
     */
    recheckAccess(): Promise<void>;
  }
  interface FastifyContextConfig {
    /** The permission the credential needs. Every route has either this or `public`. */
    permission?: Permission;
    /** Needs no credential. `unlimited`: no rate limit either, for operators' probes. */
    public?: true | 'unlimited';
    /** Works even if the organization has reached its limit of `api_calls`. */
    exemptFromUsageLimit?: true;
    /** The response stays open. Rejected while suspended, although it is a GET: there would be no events to send. */
    heldOpen?: true;
  }
}

export interface AccessOptions {
  authentication: AuthenticationService;
  /** Shared by all processes; limits credentials and organizations. */
  limiter: RateLimiter;
  /** Local to this process; limits callers without a valid credential by address. */
  addressLimiter: RateLimiter;
  limits: { credential: RateLimit; organization: RateLimit; address: RateLimit };
}

/** Checks each request for credential, rate limit, suspension and permission, in this order. */
export function installAccess(app: FastifyInstance, options: AccessOptions): void {
  const { authentication, limiter, addressLimiter, limits } = options;
  app.decorateRequest('scope');

  // Checked when all routes are registered, because a plugin's hooks may still complete its own routes.
  const routes: RouteOptions[] = [];
  app.addHook('onRoute', (route) => {
    routes.push(route);
  });
  app.addHook('onReady', async () => {
    const misconfigured = routes.filter(({ config }) => !config?.permission === !config?.public);
    if (misconfigured.length > 0)
      throw new Error(
        `Routes must have either permission or public: ${misconfigured.map(({ url }) => url).join(', ')}`,
      );
  });

  async function authenticate(request: FastifyRequest): Promise<Authentication> {
    return authentication.authenticate({
      token: readBearerToken(request),
      environmentId: readHeader(request, 'x-env-id'),
      requestId: request.id,
    });
  }

  async function limitAddress(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    enforceRateLimit(reply, await addressLimiter.take(request.ip, limits.address));
  }

  async function limitCredential({ scope }: FastifyRequest, reply: FastifyReply): Promise<void> {
    const credential = await limiter.take(scope.actor.id, limits.credential);
    enforceRateLimit(reply, credential);
    const organization = await limiter.take(scope.organizationId, limits.organization);
    if (!organization.allowed || organization.remaining < credential.remaining)
      enforceRateLimit(reply, organization);
  }

  app.addHook('onRequest', async (request, reply) => {
    const { permission, public: open, heldOpen } = request.routeOptions.config;
    if (open === 'unlimited') return;
    if (open || !permission) return limitAddress(request, reply);
    const { scope, suspension } = await authenticate(request).catch(async (error: unknown) => {
      await limitAddress(request, reply);
      throw error;
    });
    request.scope = scope;
    await limitCredential(request, reply);
    if (suspension && (heldOpen || (request.method !== 'GET' && request.method !== 'HEAD'))) throw suspension;
    requirePermission(scope, permission);
  });

  app.decorateRequest('recheckAccess', async function (this: FastifyRequest) {
    const { permission } = this.routeOptions.config;
    const { scope, suspension } = await authenticate(this);
    if (suspension) throw suspension;
    if (permission) requirePermission(scope, permission);
  });
}

function readBearerToken(request: FastifyRequest): string {
  const [, token] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
  if (token === undefined) throw unauthenticated();
  return token;
}

function readHeader(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join() : value;
}

function enforceRateLimit(reply: FastifyReply, verdict: RateVerdict): void {
  reply.headers({
    'ratelimit-limit': verdict.limit,
    'ratelimit-remaining': verdict.remaining,
    'ratelimit-reset': verdict.resetSeconds,
  });
  if (verdict.allowed) return;
  throw new AppError('rate_limited', {
    detail: 'Too many requests in a short time.',
    fix: `Wait ${verdict.retryAfterSeconds} s (see Retry-After) and spread requests out.`,
    headers: { 'retry-after': String(verdict.retryAfterSeconds) },
  });
}
