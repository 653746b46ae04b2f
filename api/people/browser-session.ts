import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Cookies } from '../plugins/cookies.ts';

const SESSION_COOKIE = 'session';

/**
 * The session of a browser. Only pages read its cookie: the API under /api/v1 accepts bearer tokens alone, so that no
 * other site can make a browser call it.
 */
export interface BrowserSession {
  /** The session token, undefined if the browser has none. */
  read(request: FastifyRequest): string | undefined;
  start(reply: FastifyReply, session: { token: string; expiresAt: Date }): void;
  end(reply: FastifyReply): void;
}

export function createBrowserSession(cookies: Cookies): BrowserSession {
  return {
    read: (request) => cookies.read(request, SESSION_COOKIE),
    start: (reply, { token, expiresAt }) =>
      cookies.set(reply, SESSION_COOKIE, token, {
        maxAgeSeconds: Math.max(0, Math.floor((expiresAt.getTime() - Date.now()) / 1000)),
      }),
    end: (reply) => cookies.clear(reply, SESSION_COOKIE),
  };
}
