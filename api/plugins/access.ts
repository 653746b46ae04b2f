import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  RouteHandlerMethod,
  RouteOptions,
} from 'fastify';
import {
  type Authentication,
  type Authenticator,
  type Credentials,
  type SessionAuthenticator,
  sessionRequired,
  unauthenticated,
} from '../../domain/identity/authentication.ts';
import type { Permission } from '../../domain/identity/permissions.ts';
import { type Person, requireFreshLogin } from '../../domain/identity/person.ts';
import { requirePermission, type Scope } from '../../domain/identity/scope.ts';
import {
  classifyOperation,
  type ImpersonationAccess,
  refuseImpersonation,
  requireImpersonationAccess,
} from '../../domain/impersonation/impersonation-access.ts';
import type { RecordImpersonatedCall } from '../../domain/impersonation/impersonation-record.ts';
import { isSessionToken } from '../../domain/sessions/session-token.ts';
import { endOfStaffAccess, type StaffAuthenticator } from '../../domain/staff/staff-authenticator.ts';
import type { StaffRole, StaffScope } from '../../domain/staff/staff-scope.ts';
import { createFairShare } from '../../platform/concurrency/fair-share.ts';
import { sha256 } from '../../platform/crypto.ts';
import { AppError } from '../../platform/errors.ts';
import type { RateLimit, RateLimiter, RateVerdict } from '../../platform/rate-limit/rate-limiter.ts';
import type { BrowserSession } from './browser-session.ts';
import type { Caller } from './caller.ts';
import { holdersOf } from './open-responses.ts';
import type { RefusedSends } from './refused-sends.ts';
import { createSignedCallers } from './signed-callers.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who makes the request and what they may access; unset on public routes and those of a person. */
    scope: Scope;
    /** The signed-in person, on routes with `person`. */
    person: Person;
    /** The signed-in staff member, on routes with `staff`. */
    staff: StaffScope;
    /** User id of the staff member whose impersonation makes the request; unset for all others. */
    impersonatedBy?: string;
    /** Why the organization, environment or inbox of the request can change nothing; unset for others. */
    suspension?: AppError | undefined;
    /** When the credential stops working by itself, as of the last check; null if it does not. Unset on public routes. */
    accessEndsAt: Date | null;
    /**
     * Checks the credential again, for responses that stay open, and updates `accessEndsAt`.
     *
     * @throws AppError the error a new request would get.
     */
    recheckAccess(): Promise<void>;
    /**
     * Confirms what the request takes for granted about its credential, if anything. If that is wrong, admits the request again.
     *
     * @returns whether the request was admitted again, perhaps with another scope.
     * @throws AppError if the request is refused now.
     */
    confirmAccess(reply: FastifyReply): Promise<boolean>;
    /** What {@link findCaller} has found. */
    caller: Caller | undefined;
    /** The valid credential of a request whose path or method does not exist; undefined without one. Requires nothing. */
    findCaller(): Promise<Caller | undefined>;
    /**
     * The session of a public request that may have one.
     *
     * @throws AppError if it has a credential that is not a valid session, or one that can only enroll a factor.
     */
    findSession(): Promise<{ person: Person; token: string } | undefined>;
  }
  interface FastifyContextConfig {
    /**
     * The permission the credential needs. Every route has exactly one of this, `credential`, `person`, `staff` and
     * `public`.
     */
    permission?: Permission;
    /**
     * Needs a credential and no permission. `any`: also a session that has entered no organization; the request then has no
     * scope. `agent`: of those that an agent's host may have, never that of a person. The rate limit refuses such a request in
     * its handler: `rateRefusal`.
     */
    credential?: 'any' | 'agent';
    /** A further permission that the credential needs. */
    alsoRequires?: Permission;
    /**
     * Belongs to a person and to no organization: needs a session. `any`: also one that may only enroll a second factor;
     * `fresh`: the person signed in within the last ten minutes.
     */
    person?: 'any' | 'full' | 'fresh';
    /** Belongs to the service and to no organization: needs the session of a staff member. `support`: of every role. */
    staff?: StaffRole;
    /**
     * Needs no credential. `unlimited`: no rate limit either, for operators' probes. `signed`: the request proves its origin
     * by a signature; only requests that fail to count towards a limit.
     */
    public?: true | 'unlimited' | 'signed';
    /** Works even if the organization has reached its limit of `api_calls`. */
    exemptFromUsageLimit?: true;
    /** Not counted as one of `api_calls`, and so not subject to their limit. */
    isUncounted?: true;
    /** A change that works while the organization is suspended: with billing, owners end a suspension for payment. */
    allowedWhileSuspended?: true;
    /** Refuses every credential alike if this service does not offer the operation: before the permission, which would not help. */
    requireFeature?: () => void;
    /** The response stays open. Rejected while suspended, although it is a GET: there would be no events to send. */
    heldOpen?: true;
    /** `never`: refused to impersonations, although their permission covers it: it gives access that outlives them. */
    impersonation?: 'never';
    /** A page for people: the credential is the browser's cookie, not the header Authorization. */
    page?: true;
  }
}

export interface AccessOptions {
  keys: Authenticator;
  connections: Authenticator;
  /** The connections that also work at `/api/v1`. */
  commandLine: Authenticator;
  sessions: SessionAuthenticator;
  staff: StaffAuthenticator;
  impersonations: Authenticator;
  recordImpersonatedCall: RecordImpersonatedCall;
  /** Shared by all processes; limits credentials and organizations. */
  limiter: RateLimiter;
  /** Local to this process; limits callers without a valid credential by address, and refused ones by credential. */
  addressLimiter: RateLimiter;
  refusedSends: RefusedSends;
  /** The credential of pages. */
  browserSession: BrowserSession;
  /** Where hosts of agents learn how to connect (RFC 9728). */
  resourceMetadataUrl: string;
  limits: { credential: RateLimit; organization: RateLimit; address: RateLimit };
}

/** Of open responses, at the same time: each checks again with every heartbeat, and a change may concern all of them. */
const MAX_CONCURRENT_CHECKS = 4;

/** Checks each request for credential, rate limit, suspension and permission, in this order. */
export function installAccess(app: FastifyInstance, options: AccessOptions): void {
  const {
    keys,
    connections,
    commandLine,
    sessions,
    staff: staffMembers,
    impersonations,
    recordImpersonatedCall,
    limiter,
    addressLimiter,
    refusedSends,
    browserSession,
    limits,
  } = options;
  app.decorateRequest('scope');
  app.decorateRequest('person');
  app.decorateRequest('staff');
  app.decorateRequest('impersonatedBy');
  app.decorateRequest('suspension');
  app.decorateRequest('accessEndsAt');
  app.decorateRequest('caller');

  // Checked when all routes are registered, because a plugin's hooks may still complete its own routes.
  const routes: RouteOptions[] = [];
  app.addHook('onRoute', (route) => {
    routes.push(route);
    if (mayPresume(route)) route.handler = confirmAfter(route.handler);
  });
  app.addHook('onReady', async () => {
    const misconfigured = routes.filter(
      ({ config }) =>
        [config?.permission, config?.credential, config?.person, config?.staff, config?.public].filter(
          Boolean,
        ).length !== 1,
    );
    if (misconfigured.length > 0)
      throw new Error(
        `Routes must have exactly one of permission, credential, person, staff and public: ${misconfigured.map(({ url }) => url).join(', ')}`,
      );
  });

  /**
   * What a token may be. Hosts of agents have keys and connections: a person's session never works at `/mcp`, nor do cookies,
   * and a connection works nowhere else, except one of the CLI.
   */
  function authenticatorOf(
    { routeOptions, toolCall }: FastifyRequest,
    { token }: Credentials,
  ): Authenticator {
    if (routeOptions.config.credential === 'agent' || toolCall)
      return connections.accepts(token) ? connections : keys;
    return [impersonations, sessions, commandLine].find(({ accepts }) => accepts(token)) ?? keys;
  }

  /** As {@link authenticate}, or what is presumed of the credential, for a read that confirms it before it answers. */
  async function authenticateRead(request: FastifyRequest): Promise<Authentication> {
    const credentials = readCredentials(request, browserSession);
    const presumed = authenticatorOf(request, credentials).presume?.(credentials);
    if (!presumed) return authenticate(request);
    request.accessEndsAt = presumed.expiresAt;
    return presumed;
  }

  async function authenticate(request: FastifyRequest): Promise<Authentication> {
    const credentials = readCredentials(request, browserSession);
    const authentication = await authenticatorOf(request, credentials).authenticate(credentials);
    request.accessEndsAt = authentication.expiresAt;
    return authentication;
  }

  /**
   * As {@link authenticate}. A tool call has authenticated at `/mcp`: its operation does so again only if the environment of the
   * credential depends on the resource that the path names.
   */
  async function authenticateOnce(request: FastifyRequest): Promise<Authentication> {
    const known = request.toolCall?.authentication;
    if (!known || dependsOnResource(request, known.scope)) return authenticate(request);
    request.accessEndsAt = known.expiresAt;
    return known;
  }

  /** Undefined for a session that has entered no organization; the request then has its person. */
  async function authenticateAny(request: FastifyRequest): Promise<Authentication | undefined> {
    return authenticateOnce(request).catch(async (error: unknown) => {
      const { token, organizationId } = readCredentials(request, browserSession);
      if (!isOutsideOrganizations(error) || !sessions.accepts(token) || organizationId !== undefined)
        throw error;
      request.person = await authenticatePerson(request, 'any');
      request.accessEndsAt = request.person.sessionExpiresAt;
      return undefined;
    });
  }

  /** A person's own session. In a browser, an impersonation beside it does not count. */
  async function authenticateSession(request: FastifyRequest): Promise<Person> {
    const credentials = readCredentials(request, browserSession, { ownSession: true });
    if (impersonations.accepts(credentials.token)) {
      markImpersonated(request, (await impersonations.authenticate(credentials)).scope);
      refuseImpersonation();
    }
    if (keys.accepts(credentials.token)) throw sessionRequired();
    return sessions.authenticatePerson(credentials);
  }

  /** Every answer to an impersonation says so, whatever else is wrong with the request. */
  function markImpersonated(request: FastifyRequest, { impersonation, actor }: Scope): void {
    if (impersonation) request.impersonatedBy = actor.id;
  }

  async function recordImpersonation(request: FastifyRequest): Promise<void> {
    const { scope, routeOptions } = request;
    const { impersonation } = scope;
    if (!impersonation) return;
    await recordImpersonatedCall(
      { ...scope, impersonation },
      {
        operation: routeOptions.schema?.operationId ?? routeOptions.url ?? '',
        resourceId: readResourceId(request),
        isChange: accessOf(request) === 'write',
      },
    );
  }

  async function authenticatePerson(
    request: FastifyRequest,
    level: 'any' | 'full' | 'fresh',
  ): Promise<Person> {
    const person = await authenticateSession(request);
    if (level !== 'any' && person.kind === 'enroll') throw enrollmentOnly();
    if (level === 'fresh') requireFreshLogin(person);
    return person;
  }

  async function authenticateStaff(request: FastifyRequest, role: StaffRole): Promise<StaffScope> {
    const person = await authenticateSession(request);
    request.accessEndsAt = endOfStaffAccess(person);
    return staffMembers.authenticate(person, role);
  }

  async function limitAddress(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    enforceRateLimit(reply, await addressLimiter.take(request.ip, limits.address));
  }

  /**
   * Requests without a valid credential count towards the limit of their address. Those with one that are refused
   * otherwise count towards a limit of the credential; an error of the service counts towards no limit.
   */
  async function limitIfRejected<T>(
    request: FastifyRequest,
    reply: FastifyReply,
    work: () => Promise<T>,
  ): Promise<T> {
    return work().catch(async (error: unknown) => {
      const status = error instanceof AppError ? error.status : 500;
      if (status === 401) await limitAddress(request, reply);
      else if (status < 500) await limitRefused(request, reply);
      throw error;
    });
  }

  async function limitRefused(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { token } = readCredentials(request, browserSession);
    const bucket = `refused:${sha256(token).toString('base64url')}`;
    enforceRateLimit(reply, await addressLimiter.take(bucket, limits.credential));
  }

  const signedCallers = createSignedCallers();

  /** Nothing of the body is read before. What the response says decides whether the request counts. */
  function limitSigned({ ip }: FastifyRequest, reply: FastifyReply): void {
    const end = signedCallers.begin(ip);
    if (!end) throw rateLimited(1);
    reply.raw.once('finish', () => {
      const { statusCode } = reply;
      end(statusCode < 300 ? 'proven' : statusCode < 500 ? 'refused' : 'unknown');
    });
    reply.raw.once('close', () => end('refused'));
  }

  /** A tool call counts once: the request to `/mcp` has taken its share. */
  async function limitCredential({ scope, toolCall }: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (toolCall?.request.rateRefusal) throw toolCall.request.rateRefusal;
    if (toolCall) return;
    const credential = await limiter.take(scope.actor.id, limits.credential);
    enforceRateLimit(reply, credential);
    const organization = await limiter.take(scope.organizationId, limits.organization);
    if (!organization.allowed || organization.remaining < credential.remaining)
      enforceRateLimit(reply, organization);
  }

  async function admit(request: FastifyRequest, reply: FastifyReply, mayBePresumed: boolean): Promise<void> {
    const {
      permission,
      credential,
      person,
      staff,
      alsoRequires,
      public: open,
      heldOpen,
      allowedWhileSuspended,
      requireFeature,
    } = request.routeOptions.config;
    if (open === 'unlimited') return;
    if (open === 'signed') return limitSigned(request, reply);
    if (person) {
      await limitIfRejected(request, reply, async () => {
        request.person = await authenticatePerson(request, person);
      });
      return enforceRateLimit(reply, await limiter.take(request.person.userId, limits.credential));
    }
    if (staff) {
      await limitIfRejected(request, reply, async () => {
        request.staff = await authenticateStaff(request, staff);
      });
      return enforceRateLimit(reply, await limiter.take(request.staff.staffId, limits.credential));
    }
    if (open || !(permission || credential)) return limitAddress(request, reply);
    const authentication = await limitIfRejected(request, reply, () =>
      credential === 'any'
        ? authenticateAny(request)
        : mayBePresumed
          ? authenticateRead(request)
          : authenticateOnce(request),
    );
    if (!authentication)
      return enforceRateLimit(reply, await limiter.take(request.person.userId, limits.credential));
    const { scope, suspension } = authentication;
    request.scope = scope;
    request.suspension = suspension;
    markImpersonated(request, scope);
    if (scope.impersonation) requireImpersonationAccess(scope.impersonation, accessOf(request));
    await limitCredential(request, reply).catch(async (error: unknown) => {
      if (credential !== 'agent' || !(error instanceof AppError))
        return refusedSends.refuse(request, error, 'rate_limited');
      request.rateRefusal = error;
      // The refusal needs the body, which costs what the limit should save. So such refusals are limited, too.
      await limitRefused(request, reply);
    });
    if (request.scope.sendRefusal || credential === 'agent') return;
    if (
      suspension &&
      !allowedWhileSuspended &&
      (heldOpen || (request.method !== 'GET' && request.method !== 'HEAD'))
    )
      refusedSends.refuse(request, suspension, 'account_paused');
    requireFeature?.();
    if (permission) requirePermission(scope, permission);
    if (alsoRequires) requirePermission(scope, alsoRequires);
    await recordImpersonation(request);
  }

  app.addHook('onRequest', async (request, reply) => {
    const mayBePresumed = request.toolCall === undefined && mayPresume(request.routeOptions);
    await admit(request, reply, mayBePresumed).catch(async (error: unknown) => {
      // It may be refused only because of what was presumed.
      if (!(await request.confirmAccess(reply))) throw error;
    });
  });
  app.decorateRequest(
    'confirmAccess',
    async function (this: FastifyRequest, reply: FastifyReply): Promise<boolean> {
      const { presumption } = this.scope ?? {};
      if (!presumption || presumption.isConfirmed) return false;
      try {
        await presumption.confirm();
        return false;
      } catch {
        // Whatever the reason is: admitting the request again finds it, and states it.
        this.scope = undefined as unknown as Scope;
        await admit(this, reply, false);
        return true;
      }
    },
  );
  app.addHook('onSend', async (request, reply) => {
    if (request.routeOptions.config.credential === 'agent' && reply.statusCode === 401)
      reply.header('www-authenticate', `Bearer resource_metadata="${options.resourceMetadataUrl}"`);
    if (request.impersonatedBy) reply.header('x-impersonated-by', request.impersonatedBy);
    if (request.scope?.presumption?.isConfirmed === false)
      throw new Error('The response would leave before its credential is confirmed.');
  });

  app.decorateRequest('findSession', async function (this: FastifyRequest) {
    const { page } = this.routeOptions.config;
    const isPresent = page
      ? browserSession.read(this) !== undefined
      : this.headers.authorization !== undefined;
    if (!isPresent) return undefined;
    const { token } = readCredentials(this, browserSession, { ownSession: true });
    return { person: await authenticatePerson(this, 'full'), token };
  });

  app.decorateRequest('findCaller', async function (this: FastifyRequest): Promise<Caller | undefined> {
    if (this.headers.authorization === undefined) return undefined;
    try {
      const authentication = await authenticateAny(this);
      if (!authentication)
        return { isSuspended: false, isPerson: true, mayOnlyEnroll: this.person.kind === 'enroll' };
      const { scope, suspension } = authentication;
      this.caller = {
        scope,
        isSuspended: suspension !== undefined,
        isPerson: scope.member !== undefined,
        mayOnlyEnroll: false,
      };
      return this.caller;
    } catch (error) {
      if (error instanceof AppError && error.status < 500) return undefined;
      throw error;
    }
  });

  const rechecks = createFairShare({ name: 'checks of credentials', capacity: MAX_CONCURRENT_CHECKS });
  app.decorateRequest('recheckAccess', async function (this: FastifyRequest) {
    const release = await rechecks.acquire({ holders: holdersOf(this) });
    try {
      const { permission, staff } = this.routeOptions.config;
      if (staff) {
        await authenticateStaff(this, staff);
        return;
      }
      const { scope, suspension } = await authenticate(this);
      if (suspension) throw suspension;
      if (permission) requirePermission(scope, permission);
    } finally {
      release();
    }
  });
}

/** Reads that answer at once, from the database. Their response leaves only after the credential is confirmed. */
function mayPresume({ method, config }: Pick<RouteOptions, 'method' | 'config'>): boolean {
  const isRead = [method].flat().every((name) => name === 'GET' || name === 'HEAD');
  return isRead && config?.permission !== undefined && !config.heldOpen && !config.page;
}

/** Runs the handler again if the credential has changed since it was presumed. */
function confirmAfter(handle: RouteHandlerMethod): RouteHandlerMethod {
  return async function (this: FastifyInstance, request, reply) {
    const run = async () => handle.call(this, request, reply);
    if (!request.scope.presumption) return run();
    const [outcome] = await Promise.allSettled([run()]);
    if (await request.confirmAccess(reply)) return run();
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  };
}

function readCredentials(
  request: FastifyRequest,
  browserSession: BrowserSession,
  { ownSession = false } = {},
): Credentials {
  const client = { ip: request.ip, requestId: request.id };
  if (request.routeOptions.config.page) {
    const session = browserSession.read(request);
    const impersonation = ownSession ? undefined : browserSession.readImpersonation(request);
    if (impersonation !== undefined)
      return {
        ...client,
        token: impersonation,
        // Taken to another browser, the cookie is worth nothing.
        browserSession: session ?? '',
        environmentId: undefined,
        organizationId: undefined,
        resourceId: undefined,
      };
    const token = session;
    // The cookie is a person's session. A key or an impersonation in its place would act as one, without its checks.
    if (token === undefined || !isSessionToken(token)) throw unauthenticated();
    const { org, env } = request.query as { org?: unknown; env?: unknown };
    return {
      ...client,
      token,
      environmentId: typeof env === 'string' ? env : undefined,
      organizationId: typeof org === 'string' ? org : undefined,
      resourceId: readResourceId(request),
    };
  }
  return {
    ...client,
    token: readBearerToken(request),
    environmentId: readHeader(request, 'x-env-id'),
    organizationId: readHeader(request, 'x-org-id'),
    resourceId: readResourceId(request),
  };
}

/** A session belongs to several organizations and names none, to none at all, or is not let into its only one. */
function isOutsideOrganizations(error: unknown): boolean {
  const codes = ['organization_required', 'permission_denied', 'policy_violation', 'organization_deleted'];
  return error instanceof AppError && codes.includes(error.code);
}

function accessOf({ method, routeOptions }: FastifyRequest): ImpersonationAccess {
  const { permission, credential, impersonation } = routeOptions.config;
  if (credential) return 'read';
  if (!permission) return 'never';
  return classifyOperation({ permission, method, isForbidden: impersonation === 'never' });
}

/** The id that the path names. Text that is no id may contain characters PostgreSQL cannot store. */
function readResourceId({ params }: FastifyRequest): string | undefined {
  const { inboxId, id = inboxId } = params as Record<string, string | undefined>;
  return id !== undefined && /^[a-z]{3}_[0-9a-z]{26}$/.test(id) ? id : undefined;
}

function dependsOnResource(request: FastifyRequest, scope: Scope): boolean {
  const isFixed = scope.environmentBound || scope.environmentSelected === true;
  return !isFixed && readResourceId(request) !== undefined;
}

function enrollmentOnly(): AppError {
  return new AppError('policy_violation', {
    detail: 'This session can only enroll a second factor, which an organization of yours requires.',
    fix: 'Enroll one: POST /api/v1/auth/mfa/totp/setup or /api/v1/auth/mfa/webauthn/register-options.',
    extensions: { policy: 'require_mfa' },
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
  throw rateLimited(verdict.retryAfterSeconds);
}

function rateLimited(retryAfterSeconds: number): AppError {
  return new AppError('rate_limited', {
    detail: 'Too many requests in a short time.',
    fix: `Wait ${retryAfterSeconds} s (see Retry-After) and spread requests out.`,
    headers: { 'retry-after': String(retryAfterSeconds) },
  });
}
