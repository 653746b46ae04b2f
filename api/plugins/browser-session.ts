import type { FastifyReply, FastifyRequest } from 'fastify';
import type { StartedSession } from '../../domain/people/start-session.ts';
import type { Cookies } from './cookies.ts';

const SESSION_COOKIE = 'session';
const IMPERSONATION_COOKIE = 'impersonation';

/**
 * The session of a browser. Only pages read its cookie: the API under /api/v1 accepts bearer tokens alone, so that no
 * other site can make a browser call it.
 */
export interface BrowserSession {
  /** The session token, undefined if the browser has none. */
  read(request: FastifyRequest): string | undefined;
  start(reply: FastifyReply, session: StartedSession): void;
  end(reply: FastifyReply): void;
  /** The token of an impersonation that this browser has begun; undefined if it has none. */
  readImpersonation(request: FastifyRequest): string | undefined;
  /** A cookie of its own: the session of the staff member stays as it is, and is needed beside it. */
  startImpersonation(reply: FastifyReply, impersonation: { token: string; expiresAt: Date }): void;
  endImpersonation(reply: FastifyReply): void;
}

export function createBrowserSession(cookies: Cookies): BrowserSession {
  return {
    read: (request) => cookies.read(request, SESSION_COOKIE),
    start(reply, session) {
      const { token, expiresAt } = session;
      cookies.set(reply, SESSION_COOKIE, token, { maxAgeSeconds: secondsUntil(expiresAt) });
      reply.rememberDevice({ session });
    },
    end(reply) {
      cookies.clear(reply, SESSION_COOKIE);
      cookies.clear(reply, IMPERSONATION_COOKIE);
    },
    readImpersonation: (request) => cookies.read(request, IMPERSONATION_COOKIE),
    startImpersonation: (reply, { token, expiresAt }) =>
      cookies.set(reply, IMPERSONATION_COOKIE, token, { maxAgeSeconds: secondsUntil(expiresAt) }),
    endImpersonation: (reply) => cookies.clear(reply, IMPERSONATION_COOKIE),
  };
}

const secondsUntil = (time: Date): number => Math.max(0, Math.floor((time.getTime() - Date.now()) / 1000));
